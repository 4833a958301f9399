/* info.h - prints one model file with its facts and its size, for `bjepa info MODEL`. */
#ifndef BJEPA_INFO_H
#define BJEPA_INFO_H

/* Returns the exit code. The file is loaded completely, so a damaged file is detected. */
int info_model(const char *checkpoint, int json);

#endif
