/* Softmax of an array that is spread over ranks: no element leaves its rank, one small message is exchanged.

       mpicc 02_softmax.c $(pkg-config --cflags --libs allfold) -o 02_softmax && mpirun -np 4 ./02_softmax */
#include <allfold.h>

#include <stdio.h>
#include <stdlib.h>

static void fail(const char *message)
{
    fprintf(stderr, "02_softmax: %s\n", message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    /* Parts may differ in length: rank r has (r + 1) * 1000 logits, large enough to overflow a naive exp. */
    const uint64_t count = (uint64_t)(rank + 1) * 1000;
    float *logits = malloc(count * sizeof *logits), *probabilities = malloc(count * sizeof *probabilities);
    for (uint64_t i = 0; i < count; i++)
        logits[i] = 1000.0f + (float)(i % 97) * 0.125f - (float)rank;

    allfold_context *context;
    char message[512];
    if (allfold_open(MPI_COMM_WORLD, NULL, &context, message, sizeof message) != ALLFOLD_OK)
        fail(message);

    const allfold_array part = {.data = logits, .count = count, .type = ALLFOLD_F32};
    if (allfold_softmax(context, &part, probabilities, ALLFOLD_F32, NULL) != ALLFOLD_OK)
        fail(allfold_message(context));

    /* The probabilities of all ranks together add up to one. */
    const allfold_array result = {.data = probabilities, .count = count, .type = ALLFOLD_F32};
    allfold_result sum, most;
    if (allfold_reduce(context, ALLFOLD_SUM, &result, NULL, &sum) != ALLFOLD_OK
        || allfold_reduce(context, ALLFOLD_MAX, &result, NULL, &most) != ALLFOLD_OK)
        fail(allfold_message(context));
    if (rank == 0)
        printf("%llu probabilities on %d ranks: sum %.9f, largest %.6e\n", (unsigned long long)sum.count, size,
               sum.value.f64, most.value.f64);

    allfold_close(context);
    free(logits);
    free(probabilities);
    MPI_Finalize();
    return 0;
}
