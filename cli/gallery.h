/* gallery.h - the verbs of `bjepa gallery`. */
#ifndef BJEPA_GALLERY_H
#define BJEPA_GALLERY_H

int cmd_gallery_lock(int argc, char **argv);
int cmd_gallery_draw(int argc, char **argv);

#endif
