/* info.h - what `bjepa info MODEL` prints: one model file, its facts and its size. */
#ifndef BJEPA_INFO_H
#define BJEPA_INFO_H

/* Returns the exit code. The file is loaded, so a damaged one fails. */
int info_model(const char *checkpoint, int json);

#endif
