"""The drawings that need no measurement: which thread touches which element, step by step, from the index formulas that the
rungs themselves use; which banks of shared memory a warp hits; what a warp's load fetches. For tools/draw-ladder."""
from ladder_svg import HUES, Page

# The formulas. Each gives for a block of `block` threads the steps, as (s, {thread: element}): that thread adds
# x[element + s] to x[element].


def neighboured(block):
    """if (t % (2 * s) == 0) x[t] += x[t + s];"""
    s = 1
    while s < block:
        yield s, {t: t for t in range(block) if t % (2 * s) == 0}
        s *= 2


def packed(block):
    """i = 2 * s * t; if (i < block) x[i] += x[i + s];"""
    s = 1
    while s < block:
        yield s, {t: 2 * s * t for t in range(block) if 2 * s * t < block}
        s *= 2


def sequential(block):
    """if (t < s) x[t] += x[t + s];"""
    s = block // 2
    while s > 0:
        yield s, {t: t for t in range(block) if t < s}
        s //= 2


def warps(threads, block, lanes):
    """How many warps a step keeps busy, and how many of those have idle lanes too: they diverge."""
    counts = [sum(first <= t < first + lanes for t in threads) for first in range(0, block, lanes)]
    return sum(count > 0 for count in counts), sum(0 < count < lanes for count in counts)


def totals(steps, block, lanes=32):
    """Warp-steps that a whole block issues, and how many of them diverge."""
    found = [warps(threads, block, lanes) for _, threads in steps(block)]
    return sum(busy for busy, _ in found), sum(divergent for _, divergent in found)


def conflict(words, banks=32):
    """How many passes a warp's access to these words of shared memory takes: the most different words in one bank."""
    return max(len({word for word in words if word % banks == bank}) for bank in range(banks))


BLOCK, LANES = 16, 4  # of the drawings: small enough to see
CELL, GAP = 36, 8
LEFT = 152


def place(i):
    """The x of thread i or element i: warps stand a little apart."""
    return LEFT + i * CELL + i // LANES * GAP


def plural(count, word):
    return f"{count} {word}{'' if count == 1 else 's'}"


def draw_step(page, y, s, threads):
    busy, divergent = warps(threads, BLOCK, LANES)
    page.write(20, y + 15, f"s = {s}", "mono", 14, weight=600)
    page.write(LEFT - 14, y + 14, "threads", "soft", 11, "end")
    page.write(LEFT - 14, y + 62, "elements", "soft", 11, "end")
    for t in range(BLOCK):
        page.rect(place(t) + 4, y, CELL - 8, 20, f"h{t // LANES}" if t in threads else "idle", 10)
        page.write(place(t) + CELL / 2, y + 14.5, str(t), "on" if t in threads else "soft", 11, "middle")
    for i in range(BLOCK):
        page.rect(place(i) + 1, y + 44, CELL - 2, 26, "cell")
    for t, i in threads.items():
        page.rect(place(i) + 1, y + 44, CELL - 2, 26, f"h{t // LANES}")
        page.line(place(t) + CELL / 2, y + 20, place(i) + CELL / 2, y + 44, f"s{t // LANES}", 1.6)
        page.curve(place(i + s) + CELL / 2, y + 70, place(i) + CELL / 2, y + 71, 14 + 3 * min(s, 8), f"s{t // LANES}")
    for i in range(BLOCK):
        page.write(place(i) + CELL / 2, y + 61.5, str(i), "on" if i in threads.values() else "soft", 12, "middle")
    right = place(BLOCK) + 6
    page.write(right, y + 14, f"{plural(busy, 'warp')} at work", "", 12)
    page.write(right, y + 31, f"{divergent} divergent" if divergent else "none divergent", "soft", 12)


def draw_access(name, steps, title, rule, text):
    count = len(list(steps(BLOCK)))
    page = Page(place(BLOCK) + 130, 88 + count * 116 + 44, title, text)
    page.write(20, 34, title, "", 18, weight=600)
    page.write(20, 58, rule, "mono soft", 13)
    for row, (s, threads) in enumerate(steps(BLOCK)):
        draw_step(page, 88 + row * 116, s, threads)
    issued, divergent = totals(steps, 256)
    y = 88 + count * 116 + 18
    page.write(20, y, f"Drawn: a block of {BLOCK} threads, in warps of {LANES}. A block of 256 in warps of 32 issues "
               f"{issued} warp-steps, {divergent} of them divergent.", "soft", 12.5)
    return name, page


def access_pictures():
    yield draw_access("access-neighboured", neighboured, "Neighboured pairs",
                      "if (t % (2 * s) == 0)  x[t] += x[t + s];      s = 1, 2, 4, ...",
                      "In every step working and idle threads are mixed in the same warps, so every warp diverges.")
    yield draw_access("access-packed", packed, "Neighboured pairs, the working threads side by side",
                      "i = 2 * s * t;  if (i < block)  x[i] += x[i + s];      s = 1, 2, 4, ...",
                      "Working threads fill whole warps, but their elements lie further apart from step to step.")
    yield draw_access("access-sequential", sequential, "Sequential addressing: interleaved pairs",
                      "if (t < s)  x[t] += x[t + s];      s = block / 2, block / 4, ...",
                      "Working threads fill whole warps and neighbours touch neighbours.")


BANKS = 32


def draw_banks(page, x, y, title, steps):
    page.write(x, y, title, "", 14, weight=600)
    for row, (s, threads) in enumerate(steps):
        top = y + 18 + row * 42
        words = [threads[t] for t in range(BANKS) if t in threads]
        ways = conflict(words)
        page.write(x, top + 14, f"s = {s}", "mono soft", 12)
        for bank in range(BANKS):
            hits = len({word for word in words if word % BANKS == bank})
            page.rect(x + 62 + bank * 10, top, 9, 20, "cell", 1)
            if hits:
                page.rect(x + 62 + bank * 10, top, 9, 20, "h4" if hits > 1 else "h2", 1)
        page.write(x + 62 + BANKS * 10 + 12, top + 14.5, "1 pass" if ways == 1 else f"{ways} passes", "", 12)


def bank_picture():
    block = 1024
    page = Page(950, 372, "Banks of shared memory",
                "Working threads side by side with elements 2s apart hit few banks; neighbours with neighbours hit all.")
    page.write(20, 34, "Which of the 32 banks the first warp's loads of x[i] hit", "", 18, weight=600)
    page.write(20, 56, f"a block of {block} threads, the steps in which the first warp is full; words of 4 bytes, "
               "bank = word % 32", "soft", 13)
    full = {name: [(s, threads) for s, threads in steps(block) if all(t in threads for t in range(BANKS))]
            for name, steps in (("packed", packed), ("sequential", sequential))}
    draw_banks(page, 20, 92, "i = 2 * s * t", full["packed"])
    draw_banks(page, 490, 92, "i = t", full["sequential"])
    page.rect(20, 338, 10, 10, "h2", 1)
    page.write(36, 347, "one word of the bank: no conflict", "soft", 12.5)
    page.rect(270, 338, 10, 10, "h4", 1)
    page.write(286, 347, "several words of one bank: read one after another, a pass for each", "soft", 12.5)
    return "banks", page


ROWS, COLUMNS, SECTOR = 8, 16, 8  # a small matrix of floats; memory moves in sectors of 32 bytes, 8 floats


def draw_matrix(page, x, y, title, note, lane_of):
    """lane_of(row, column): which lane's first load takes the element, or None."""
    side = 15
    page.write(x, y, title, "", 14, weight=600)
    touched = {(row, column // SECTOR) for row in range(ROWS) for column in range(COLUMNS)
               if lane_of(row, column) is not None}
    for row in range(ROWS):
        for column in range(COLUMNS):
            left, top = x + column * side + column // SECTOR * 5, y + 18 + row * (side + 3)
            lane = lane_of(row, column)
            page.rect(left, top, side - 1, side - 1, "cell" if lane is None else "h0", 2)
            if lane is None and (row, column // SECTOR) in touched:
                page.rect(left, top, side - 1, side - 1, "h1", 2, 0.45)
            if lane is not None:
                page.write(left + side / 2 - 0.5, top + 11, str(lane), "on", 10, "middle")
    y += 18 + ROWS * (side + 3) + 18
    used = sum(lane_of(row, column) is not None for row in range(ROWS) for column in range(COLUMNS))
    page.write(x, y, f"{plural(len(touched), 'sector')} fetched: {used} of {len(touched) * SECTOR} floats used", "", 12.5)
    page.write(x, y + 18, note, "soft", 12.5)


def draw_tile(page, x, y):
    side, size = 24, ROWS
    page.write(x, y, "the corner turn through shared memory", "", 14, weight=600)
    for pad, left in ((0, x), (1, x + 250)):
        column = [row * (size + pad) for row in range(size)]
        for row in range(size):
            for c in range(size + pad):
                word = row * (size + pad) + c
                page.rect(left + c * side, y + 18 + row * 18, side - 1, 16, "h0" if c == 0 else "cell", 2)
                page.write(left + c * side + side / 2, y + 30 + row * 18, str(word % size), "on" if c == 0 else "soft", 10,
                           "middle")
        passes = conflict(column, size)
        page.write(left, y + 36 + size * 18,
                   f"tile[{size}][{size}{' + 1' if pad else ''}]: {passes} pass{'es' if passes > 1 else ''}", "", 12.5)


def coalescing_picture():
    page = Page(950, 530, "Coalescing and the corner turn",
                "A warp's load fetches whole sectors: along a row it uses all of them, down a column an eighth of each.")
    page.write(20, 34, "What the first load of a warp fetches from a row-major matrix", "", 18, weight=600)
    page.write(20, 56, f"drawn for warps of {ROWS} lanes and {ROWS} x {COLUMNS} floats; a number is the lane that asked; "
               "memory moves in sectors of 8 floats", "soft", 13)
    draw_matrix(page, 20, 92, "a lane a row", "row sums: naive", lambda row, column: row if column == 0 else None)
    draw_matrix(page, 440, 92, "lanes along a row", "row sums: coalesced (column sums: a lane a column)",
                lambda row, column: column if row == 0 and column < ROWS else None)
    draw_tile(page, 20, 330)
    x = 560
    for i, text in enumerate((
            "Numbers are banks, drawn for a tile of 8 x 8 and 8 banks.",
            "The warp fills the tile along its rows, coalesced, then each",
            "lane reads the element of its own row (blue).",
            "Unpadded, a column of the tile lies in one bank.",
            "With one column more, it lies in all of them.")):
        page.write(x, 362 + 20 * i, text, "soft", 12.5)
    return "coalescing-pattern", page


VECTOR = 4  # floats of a load of 16 bytes


def lines_picture():
    lanes = VECTOR * 2
    page = Page(860, 560, "Rows and columns: what a warp loads",
                "Which lane of a warp loads which element of a matrix at first, on four rungs of the ladders for rows and columns.")
    page.write(20, 34, "What the first load of a warp fetches, on the rungs for rows and columns", "", 18, weight=600)
    page.write(20, 56, f"drawn for warps of {lanes} lanes and {ROWS} x {COLUMNS} floats; a number is the lane that asked; "
               "memory moves in sectors of 8 floats", "soft", 13)
    draw_matrix(page, 20, 92, "thread-a-row, block-a-column", "neighbouring lanes lie a row apart",
                lambda row, column: row if column == 0 else None)
    draw_matrix(page, 440, 92, "warp-a-row, thread-a-column", "neighbouring lanes load neighbours",
                lambda row, column: column if row == 0 and column < lanes else None)
    per_row = COLUMNS // VECTOR
    draw_matrix(page, 20, 326, "rows-a-warp", f"16 bytes a lane; {per_row} lanes take a row of {COLUMNS} floats",
                lambda row, column: row * per_row + column // VECTOR if row < lanes // per_row else None)
    draw_matrix(page, 440, 326, "column-vectors", "16 bytes a lane; the other lanes have columns further right",
                lambda row, column: column // VECTOR if row == 0 else None)
    return "rows-columns-pattern", page


def pictures():
    """(name, page) of every drawing."""
    assert len(HUES) > BLOCK // LANES, "a hue for each warp"
    yield from access_pictures()
    yield bank_picture()
    yield coalescing_picture()
    yield lines_picture()
