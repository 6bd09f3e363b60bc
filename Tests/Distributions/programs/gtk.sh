# packages: gcc libc6-dev pkg-config libgtk-3-dev xvfb fonts-dejavu-core adwaita-icon-theme
# records: main Xvfb
# needs: gcc pkg-config Xvfb
# status: 5
# version: pkg-config --modversion gtk+-3.0
# timeout: 300
cat >main.c <<'END'
#include <gtk/gtk.h>
static int clicks;
static gboolean press(gpointer button) {
    g_signal_emit_by_name(button, "clicked");
    if (clicks < 50) return TRUE;
    gtk_main_quit();
    return FALSE;
}
static void clicked(GtkButton *button, gpointer label) {
    char text[16];
    (void)button;
    g_snprintf(text, sizeof text, "%d", ++clicks);
    gtk_label_set_text(GTK_LABEL(label), text);
}
static gboolean draw(GtkWidget *area, cairo_t *cairo, gpointer data) {
    (void)area, (void)data;
    for (int i = 0; i < 20; i++) cairo_arc(cairo, 50 + i, 50, 20 + i, 0, 6.28), cairo_stroke(cairo);
    return FALSE;
}
int main(int count, char **arguments) {
    gtk_init(&count, &arguments);
    GtkWidget *window = gtk_window_new(GTK_WINDOW_TOPLEVEL), *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 4);
    GtkWidget *button = gtk_button_new_with_label("press"), *label = gtk_label_new("0"), *area = gtk_drawing_area_new();
    GtkWidget *list = gtk_combo_box_text_new(), *entry = gtk_entry_new();
    for (int i = 0; i < 20; i++) gtk_combo_box_text_append_text(GTK_COMBO_BOX_TEXT(list), "a row");
    gtk_widget_set_size_request(area, 200, 100);
    gtk_container_add(GTK_CONTAINER(window), box);
    GtkWidget *all[] = {button, label, area, list, entry};
    for (int i = 0; i < 5; i++) gtk_container_add(GTK_CONTAINER(box), all[i]);
    g_signal_connect(button, "clicked", G_CALLBACK(clicked), label);
    g_signal_connect(area, "draw", G_CALLBACK(draw), NULL);
    gtk_widget_show_all(window);
    g_timeout_add(5, press, button);
    gtk_main();
    printf("%d clicks, label %s\n", clicks, gtk_label_get_text(GTK_LABEL(label)));
    return 5;
}
END
gcc -w main.c -o main $(pkg-config --cflags --libs gtk+-3.0)
# It picks a free display and says which when it is ready.
mkfifo ready
Xvfb -displayfd 9 -screen 0 800x600x24 -nolisten tcp 9>ready 2>xvfb.log &
server=$!
read -r number <ready
DISPLAY=:$number GDK_BACKEND=x11 NO_AT_BRIDGE=1 GTK_A11Y=none GSETTINGS_BACKEND=memory ./main 2>main.log
status=$?
kill $server
wait $server
exit $status
