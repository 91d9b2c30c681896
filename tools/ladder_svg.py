"""Drawing for tools/draw-ladder: a page of SVG with its own background, which follows the reader's light or dark scheme, so
that a picture can be read wherever it is shown. Shapes name a class of the style sheet below, never a colour."""
from xml.sax.saxutils import escape

FONT = "ui-sans-serif, system-ui, 'Segoe UI', Helvetica, Arial, sans-serif"
LIGHT = {"page": "#ffffff", "edge": "#d0d7de", "ink": "#1f2328", "soft": "#59636e", "faint": "#d8dee4", "cell": "#f0f3f6",
         "idle": "#b6bfc8"}
DARK = {"page": "#11161d", "edge": "#30363d", "ink": "#e6edf3", "soft": "#9aa4af", "faint": "#2c333b", "cell": "#1d252e",
        "idle": "#4a545f"}
# Hues that can be told apart, also by most who are colour-blind (after Okabe and Ito), at a lightness that stands out from
# both pages.
HUES = ("#2f81c9", "#d9822b", "#1f9e77", "#b65fa0", "#c2504b", "#7a79d4")


def scheme_css(scheme):
    return (f".page{{fill:{scheme['page']};stroke:{scheme['edge']}}}"
            f"text{{fill:{scheme['ink']}}}.soft{{fill:{scheme['soft']}}}"
            f".grid{{stroke:{scheme['faint']}}}.axis{{stroke:{scheme['soft']}}}"
            f".cell{{fill:{scheme['cell']};stroke:{scheme['edge']}}}.idle{{fill:none;stroke:{scheme['idle']}}}")


def style(dark=None):
    """The style sheet. dark: None leaves the choice to the viewer; True or False fixes it."""
    hues = "".join(f".h{i}{{fill:{hue}}}.s{i}{{stroke:{hue};fill:none}}" for i, hue in enumerate(HUES))
    common = f"text{{font-family:{FONT}}}.on{{fill:#ffffff}}.mono{{font-family:ui-monospace,Menlo,Consolas,monospace}}"
    schemes = scheme_css(DARK if dark else LIGHT)
    if dark is None:
        schemes += f"@media (prefers-color-scheme:dark){{{scheme_css(DARK)}}}"
    return f"<style>{schemes}{hues}{common}.on{{fill:#ffffff}}</style>"


class Page:
    """A page under construction. Coordinates are pixels, y downwards."""

    def __init__(self, width, height, title, text=""):
        self.width, self.height, self.title, self.text = width, height, title, text
        self.items = []

    def add(self, item):
        self.items.append(item)

    def rect(self, x, y, width, height, kind, radius=3, opacity=None):
        more = "" if opacity is None else f' fill-opacity="{opacity:.3g}"'
        self.add(f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" rx="{radius}" '
                 f'class="{kind}"{more}/>')

    def line(self, x1, y1, x2, y2, kind, width=1, dash=""):
        more = f' stroke-dasharray="{dash}"' if dash else ""
        self.add(f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" class="{kind}" '
                 f'stroke-width="{width}"{more}/>')

    def circle(self, x, y, radius, kind):
        self.add(f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{radius}" class="{kind}"/>')

    def path(self, points, kind, width=2):
        text = " ".join(f"{'L' if i else 'M'}{x:.2f} {y:.2f}" for i, (x, y) in enumerate(points))
        self.add(f'<path d="{text}" class="{kind}" stroke-width="{width}" stroke-linejoin="round"/>')

    def curve(self, x1, y1, x2, y2, bend, kind, width=1.6):
        """From (x1, y1) to (x2, y2) by way of a point `bend` below their middle, with an arrow's head at the end."""
        middle, low = (x1 + x2) / 2, max(y1, y2) + bend
        self.add(f'<path d="M{x1:.2f} {y1:.2f}Q{middle:.2f} {low:.2f} {x2:.2f} {y2:.2f}" class="{kind}" '
                 f'stroke-width="{width}"/>')
        dx, dy = x2 - middle, y2 - low
        length = (dx * dx + dy * dy) ** 0.5
        dx, dy = dx / length, dy / length
        back_x, back_y = x2 - 6 * dx, y2 - 6 * dy
        fill = kind.replace("s", "h", 1)
        self.add(f'<path d="M{x2:.2f} {y2:.2f}L{back_x - 3 * dy:.2f} {back_y + 3 * dx:.2f}'
                 f'L{back_x + 3 * dy:.2f} {back_y - 3 * dx:.2f}Z" class="{fill}"/>')

    def write(self, x, y, text, kind="", size=13, anchor="start", weight=None):
        more = f' font-weight="{weight}"' if weight else ""
        self.add(f'<text x="{x:.2f}" y="{y:.2f}" font-size="{size}" text-anchor="{anchor}" class="{kind}"{more} '
                 f'xml:space="preserve">{escape(text)}</text>')

    def svg(self, dark=None):
        head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
                f'viewBox="0 0 {self.width} {self.height}" role="img">\n<title>{escape(self.title)}</title>\n'
                f'<desc>{escape(self.text)}</desc>\n{style(dark)}\n'
                f'<rect x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="8" class="page"/>\n')
        return head + "\n".join(self.items) + "\n</svg>\n"
