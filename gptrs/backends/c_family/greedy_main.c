/* Greedy continuation of token ids: NAME [-n COUNT] [-w FILE] ID...

   Reads the ids, as a prompt, and prints the likeliest next ones, at most COUNT, up to the end of
   the text or of the context. FILE has the weights; by default it is NAME.weights in this folder. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "@NAME@.h"

enum { VOCABULARY = @VOCABULARY@, CONTEXT = @CONTEXT@, CAPACITY = @CAPACITY@ };
static const int64_t ends[] = {@ENDS@-1};

/* What one call of the model passes to the next. */
@ARRAYS@

static void *allocate(size_t bytes) {
  void *found = NULL;
  if (posix_memalign(&found, 64, bytes ? bytes : 64)) {
    fprintf(stderr, "%zu bytes of memory are not there\n", bytes);
    exit(1);
  }
  return found;
}

static const void *map_weights(const char *path) {
  int file = open(path, O_RDONLY);
  if (file < 0 || lseek(file, 0, SEEK_END) != (off_t)@UPPER@_WEIGHTS_BYTES) {
    fprintf(stderr, "%s is not the file of the weights\n", path);
    exit(1);
  }
  if (@UPPER@_WEIGHTS_BYTES == 0) return NULL;
  void *found = mmap(NULL, @UPPER@_WEIGHTS_BYTES, PROT_READ, MAP_PRIVATE, file, 0);
  if (found == MAP_FAILED) {
    perror(path);
    exit(1);
  }
  close(file);
  return found;
}

static int is_end(int64_t token) {
  for (size_t n = 0; ends[n] >= 0; n++)
    if (ends[n] == token) return 1;
  return 0;
}

int main(int count, char **given) {
  const char *path = "@NAME@.weights";
  int64_t most = CAPACITY, *tokens = allocate(CAPACITY * sizeof(int64_t)), prompt = 0;
  for (int n = 1; n < count; n++) {
    char *end;
    if (n + 1 < count && !strcmp(given[n], "-n")) {
      most = strtoll(given[++n], &end, 10);
    } else if (n + 1 < count && !strcmp(given[n], "-w")) {
      path = given[++n];
    } else {
      int64_t token = strtoll(given[n], &end, 10);
      if (*end || token < 0 || token >= VOCABULARY || prompt == CAPACITY) {
        fprintf(stderr, "%s: expected at most %d ids from 0 to %d\n", given[n], CAPACITY,
                VOCABULARY - 1);
        return 2;
      }
      tokens[prompt++] = token;
    }
  }
  if (!prompt) {
    fprintf(stderr, "usage: %s [-n COUNT] [-w FILE] ID...\n", given[0]);
    return 2;
  }
  const void *weights = map_weights(path);
  const int64_t one = 1;
  const size_t sizes[] = {@NAME@_arena_bytes(&prompt), @NAME@_arena_bytes(&one)};
  void *arena = allocate(sizes[sizes[0] < sizes[1]]);
  float *logits = allocate(VOCABULARY * sizeof(float));
@ALLOCATE@
  int64_t length = prompt;
  const int64_t *next = tokens;
  for (int64_t done = 0, new = prompt; done < most && length <= CAPACITY; done++) {
    int status = @NAME@_run(@ARGUMENTS@);
    if (status) {
      fprintf(stderr, "%s\n", @NAME@_message(status));
      return 1;
    }
@COPY@
    int64_t best = 0;
    for (int64_t id = 1; id < VOCABULARY; id++)
      if (logits[id] > logits[best]) best = id;
    if (is_end(best)) break;
    printf("%lld\n", (long long)best);
    fflush(stdout);
    if (length == CAPACITY) break;
    tokens[length] = best;
    next = &tokens[length++], new = 1;
  }
  return 0;
}
