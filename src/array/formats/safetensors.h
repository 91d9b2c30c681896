/* What the files of safetensors and their index share. */
#pragma once

#include "array/formats/formats.h"

#define SAFETENSORS_HEADER_BYTES_MAX ((uint64_t)100 << 20)
#define SAFETENSORS_INDEX_ENDING ".safetensors.index.json"

struct json_object;

/* Parses the bytes of the file, which must be one JSON object and spaces. The caller frees it (json_object_put). NULL: *error says
   why. */
struct json_object *safetensors_read_json(const struct input_file *file, struct range place, struct error *error);

/* Fails with "FILE: safetensors: expected ...". Returns false. */
__attribute__((format(printf, 3, 4)))
bool safetensors_expected(const struct input_file *file, struct error *error, const char *format, ...);
