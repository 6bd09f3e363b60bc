// Opens every plugin of a directory, one after the other, and asks each for its name.
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **arguments) {
    DIR *directory = opendir(count > 1 ? arguments[1] : ".");
    if (!directory) return 1;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[600];
        if (!strstr(entry->d_name, ".so")) continue;
        snprintf(path, sizeof path, "%s/%s", arguments[1], entry->d_name);
        void *plugin = dlopen(path, RTLD_NOW);
        const char *(*name)(void) = plugin ? (const char *(*)(void))dlsym(plugin, "name") : NULL;
        if (name) puts(name());
    }
    return closedir(directory);
}
