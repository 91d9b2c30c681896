/* Vocabulary-parallel softmax: each rank has some columns of every row of logits, as language models hold them. No logit leaves its
   rank. The pointers may be host memory, as here, or memory of the rank's CUDA device.

       mpicc 05_vocabulary.c $(pkg-config --cflags --libs allfold) -o 05_vocabulary && mpirun -np 4 ./05_vocabulary */
#include <allfold.h>

#include <stdio.h>
#include <stdlib.h>

static void fail(const char *message)
{
    fprintf(stderr, "05_vocabulary: %s\n", message);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    enum { TOKENS = 4 };
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);

    /* Rank r has words 1000 r to 1000 r + 999 of the vocabulary. Token t prefers word 7 t. */
    const uint64_t words = 1000, first = words * (uint64_t)rank;
    float *logits = malloc(TOKENS * words * sizeof *logits);
    for (uint64_t t = 0; t < TOKENS; t++)
        for (uint64_t w = 0; w < words; w++)
            logits[t * words + w] = first + w == 7 * t ? 12.0f : (float)((first + w) % 31) * 0.125f;

    allfold_context *context;
    char message[512];
    if (allfold_open(MPI_COMM_WORLD, NULL, &context, message, sizeof message) != ALLFOLD_OK)
        fail(message);

    /* The likeliest word of each token, of the whole vocabulary, and its probability: softmax in place, then argmax. */
    const allfold_view view = {.data = logits, .outer = TOKENS, .length = words, .inner = 1, .type = ALLFOLD_F32,
                               .cut = ALLFOLD_CUT_AXIS};
    double probability[TOKENS], sum[TOKENS];
    int64_t word[TOKENS];
    const allfold_output largest = {probability, word}, total = {sum, NULL};
    if (allfold_softmax_axis(context, &view, logits, ALLFOLD_F32, NULL) != ALLFOLD_OK
        || allfold_reduce_axis(context, ALLFOLD_ARGMAX, &view, NULL, &(allfold_outputs){&largest, 1}) != ALLFOLD_OK
        || allfold_reduce_axis(context, ALLFOLD_SUM, &view, NULL, &(allfold_outputs){&total, 1}) != ALLFOLD_OK)
        fail(allfold_message(context));
    for (int t = 0; t < TOKENS && rank == 0; t++)
        printf("token %d: word %lld of %llu with probability %.6f, of %.6f\n", t, (long long)word[t],
               (unsigned long long)words * (unsigned long long)size, probability[t], sum[t]);

    allfold_close(context);
    free(logits);
    MPI_Finalize();
    return 0;
}
