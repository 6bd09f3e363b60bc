"""Editors and terminals, media tools, and programs with windows, under tmux and Xvfb."""
import normal
from program import Program

# Xvfb picks a free display by itself and says which when it is ready.
DISPLAY = r"""
mkfifo ready; Xvfb -displayfd 9 -screen 0 800x600x24 -nolisten tcp 9> ready 2> xvfb.log & server=$!; read -r number < ready; export DISPLAY=:$number LIBGL_ALWAYS_SOFTWARE=1 GDK_BACKEND=x11 NO_AT_BRIDGE=1 QT_X11_NO_MITSHM=1 GTK_A11Y=none
window() { for _ in $(seq 400); do xwininfo -root -tree 2>/dev/null | grep -q "$1" && { echo "window $1"; return 0; }; sleep 0.05; done; echo "no window $1"; xwininfo -root -tree; return 1; }
finish() { kill $server; wait $server || true; }
"""
# tmux with a socket of its own; keys are sent when the screen shows what was waited for.
TMUX = r"""
t() { tmux -f /dev/null -S $PWD/socket "$@"; }
shows() { for _ in $(seq 600); do t capture-pane -p -t 0 2>/dev/null | grep -qF -- "$1" && return 0; sleep 0.05; done; echo "never shown: $1"; t capture-pane -p -t 0; return 1; }
ended() { for _ in $(seq 600); do t has-session 2>/dev/null || return 0; sleep 0.05; done; echo 'session goes on'; return 1; }
"""
GTK = r"""
#include <gtk/gtk.h>
static int clicks;
static gboolean again(gpointer button) { g_signal_emit_by_name(button, "clicked"); if (clicks < 50) return TRUE; gtk_main_quit(); return FALSE; }
static void clicked(GtkButton *b, gpointer label) { char text[32]; g_snprintf(text, sizeof text, "%d", ++clicks); gtk_label_set_text(GTK_LABEL(label), text); }
static gboolean draw(GtkWidget *w, cairo_t *c, gpointer d) { for (int i = 0; i < 20; i++) { cairo_arc(c, 50 + i, 50, 20 + i, 0, 6.28); cairo_stroke(c); } return FALSE; }
int main(int n, char **a) { gtk_init(&n, &a); GtkWidget *w = gtk_window_new(GTK_WINDOW_TOPLEVEL), *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 4), *b = gtk_button_new_with_label("press"), *l = gtk_label_new("0"), *area = gtk_drawing_area_new(), *list = gtk_combo_box_text_new();
  gtk_widget_set_size_request(area, 200, 100); for (int i = 0; i < 20; i++) { char t[8]; g_snprintf(t, 8, "row %d", i); gtk_combo_box_text_append_text(GTK_COMBO_BOX_TEXT(list), t); } gtk_container_add(GTK_CONTAINER(w), box); gtk_container_add(GTK_CONTAINER(box), b); gtk_container_add(GTK_CONTAINER(box), l);
  gtk_container_add(GTK_CONTAINER(box), area); gtk_container_add(GTK_CONTAINER(box), list); g_signal_connect(b, "clicked", G_CALLBACK(clicked), l); g_signal_connect(area, "draw", G_CALLBACK(draw), 0); gtk_widget_show_all(w); g_timeout_add(5, again, b); gtk_main(); printf("%d clicks, label %s\n", clicks, gtk_label_get_text(GTK_LABEL(l))); return 0; }
"""
QT = r"""
#include <QtWidgets>
int main(int n, char **a) { QApplication app(n, a); QWidget w; QVBoxLayout box(&w); QPushButton b("press"); QLabel l("0"); QTableWidget table(20, 3); box.addWidget(&b); box.addWidget(&l); box.addWidget(&table); int clicks = 0;
  for (int i = 0; i < 60; i++) table.setItem(i / 3, i % 3, new QTableWidgetItem(QString::number(i * i))); QObject::connect(&b, &QPushButton::clicked, [&] { l.setText(QString::number(++clicks)); if (clicks == 50) app.quit(); }); QTimer t; QObject::connect(&t, &QTimer::timeout, &b, &QPushButton::click); t.start(5); w.show();
  QPixmap picture = w.grab(); int r = app.exec(); printf("%d clicks, label %s, %dx%d, %s\n", clicks, qPrintable(l.text()), picture.width() > 0, picture.height() > 0, qPrintable(QLocale::c().toString(3.5))); return r; }
"""
PAGE = "<html><head><title>page</title><style>p{color:#123;columns:2}</style></head><body><h1>Heading</h1><p>" + "text that is long enough to be broken into lines. " * 60 + "</p><canvas id=c></canvas><script>let s=0;for(let i=0;i<1e5;i++)s+=i%7;document.body.append('sum '+s);let x=document.getElementById('c').getContext('2d');x.fillRect(1,1,20,20);Promise.resolve().then(()=>document.title='done '+s)</script></body></html>\n"
FLAT = """<?xml version="1.0" encoding="UTF-8"?><office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" office:version="1.2" office:mimetype="application/vnd.oasis.opendocument.text"><office:body><office:text>""" \
    + "".join(f"<text:h text:outline-level='1'>Heading {n}</text:h><text:p>Paragraph {n} of a document that is converted.</text:p>" for n in range(30)) + "</office:text></office:body></office:document>\n"


def programs():
    return [
        Program("vim", "vim -u NONE -es -c '%s/a/b/g' -c 'g/7/d' -c 'sort n' -c wq text; md5sum text; vim -u NONE -N -es -c 'let x = map(range(2000), \"v:val * v:val\") | call writefile([string(x[1999])], \"out\")' -c q || true; cat out; vim -u NONE -d -es -c 'qa!' text out || true; vim -u NONE -es -c 'exe \"!echo shell > s\"' -c q text; cat s",
                prepare="seq 5000 | sed 's/$/ banana/' > text", needs="vim:vim", version="vim --version", traced="vim|vim.basic", outputs=("text",)),
        Program("emacs", "emacs -Q --batch -l sort.el; md5sum text; emacs -Q --batch --eval '(princ (format \"%d\\n\" (apply (function +) (number-sequence 1 1000))))'; emacs -Q --batch --eval '(error \"wrong\")' 2>&1 | head -3; emacs -Q --batch -f batch-byte-compile sort.el 2>&1 | head -2; emacs -Q --batch --eval '(princ (shell-command-to-string \"echo shell\"))'",
                prepare="seq 3000 | sed 's/$/ banana/' > text", files={"sort.el": "(find-file \"text\")\n(sort-lines nil (point-min) (point-max))\n(goto-char (point-min))\n(while (re-search-forward \"banana\" nil t) (replace-match \"cherry\"))\n(save-buffer)\n(with-temp-buffer (insert \"(defun f (x) (* x x))\") (emacs-lisp-mode) (font-lock-ensure) (eval-buffer))\n(message \"%d\" (f 12))\n"},
                needs="emacs:emacs-nox", version="emacs --version", traced="emacs|emacs-28.2|emacs-29.1|emacs-nox|emacs-30.1", outputs=("text",), runs=2, compare="stdout status"),
        Program("tmux vim", TMUX + "t new-session -d -x 90 -y 30 'vim -u NONE -n text'; shows banana; t send-keys ':%s/banana/cherry/g' Enter; shows 'substitutions on'; t send-keys 'ggOinserted' Escape 'GA end' Escape ':syntax on' Enter ':vsplit' Enter ':help' Enter; shows help.txt; t send-keys ':wqa' Enter; ended; md5sum text",
                prepare="seq 200 | sed 's/$/ banana/' > text", needs="vim:vim tmux:tmux", version="tmux -V", traced="vim|vim.basic tmux", runs=2),
        Program("tmux nano", TMUX + "t new-session -d -x 90 -y 30 'nano -I text'; shows banana; t send-keys 'typed here' Enter; shows 'typed here'; t send-keys C-w; shows Search; t send-keys 'line 150' Enter; shows 'line 150'; t send-keys C-k C-o; shows Write; t send-keys Enter; shows Wrote; t send-keys C-x; ended; md5sum text",
                prepare="seq 200 | sed 's/.*/line & banana/' > text", needs="nano:nano tmux:tmux", version="nano --version", traced="nano tmux", runs=2),
        Program("tmux", TMUX + "t new-session -d -x 80 -y 24 -s s 'bash --norc'; t split-window -h 'bash --norc'; t new-window 'bash --norc'; t send-keys -t s:0.0 'echo left; seq 30 | tail -2' Enter; t send-keys -t s:0.1 'stty size' Enter; for _ in $(seq 300); do t capture-pane -p -t s:0.0 | grep -qx 30 && t capture-pane -p -t s:0.1 | grep -qx '24 [0-9]*' && break; sleep 0.05; done; "
                "t capture-pane -p -t s:0.1 | grep -x '24 [0-9]*'; t list-windows -F '#{window_panes}'; t resize-pane -t s:0.0 -R 5; t set-buffer copied; t show-buffer; t list-panes -t s:0 -F '#{pane_width}'; t kill-server; sleep 0", needs="tmux:tmux", version="tmux -V", runs=2),
        Program("ffmpeg", "ffmpeg -v error -f lavfi -i testsrc2=size=320x180:rate=25 -f lavfi -i sine=440 -t 3 -c:v mpeg4 -threads 2 -bitexact -c:a aac -b:a 64k a.mkv; ffprobe -v error -show_entries stream=codec_name,nb_frames,width -of csv a.mkv; ffmpeg -v error -i a.mkv -vf scale=160:-1,hflip -f framemd5 - | tail -3; ffmpeg -v error -i a.mkv -f null - ; ffmpeg -v error -i nothing_there -f null - 2>&1 || echo $?",
                needs="ffmpeg:ffmpeg", version="ffmpeg -version", timeout=200, runs=2),
        Program("ImageMagick", "C=/usr/bin/convert; $C -size 400x300 gradient:red-blue -swirl 90 -blur 0x3 -fill white -draw 'circle 200,150 240,150' a.png; $C a.png -resize 50% -rotate 30 -quality 80 b.jpg; identify -format '%m %wx%h %k\\n' a.png b.jpg; $C a.png b.jpg -append -colors 16 c.gif; compare -metric RMSE a.png a.png null: 2>&1; echo; $C a.png -format '%#' info:; $C nothing_there.png x.png 2>&1 | cut -c1-40",
                prepare="true", needs="/usr/bin/convert:imagemagick", version="/usr/bin/convert --version", traced="convert|convert-im6.q16", timeout=200, runs=2, normalise=(normal.replace(r"@.*", ""),)),
        Program("ghostscript poppler", "gs -q -dBATCH -dNOPAUSE -sDEVICE=pdfwrite -o a.pdf a.ps; pdftotext a.pdf - | md5sum; pdfinfo a.pdf | grep Pages; pdftoppm -r 50 -gray a.pdf p; md5sum p*; gs -q -dBATCH -dNOPAUSE -sDEVICE=png16m -r40 -o a%d.png a.ps; md5sum a1.png; echo 'bad operator' | gs -q -dBATCH -sDEVICE=nullpage - 2>&1 | head -1",
                files={"a.ps": "%!\n" + "/Helvetica findfont 20 scalefont setfont 50 700 moveto (page of text) show 0 1 100 { dup 2 mul 100 moveto 300 exch 3 mul lineto stroke } for showpage\n" * 5}, needs="gs:ghostscript pdftotext:poppler-utils", version="gs --version", traced="gs pdftotext", runs=2),
        Program("graphviz", "dot -Tsvg g.dot | md5sum; neato -Tpng g.dot | md5sum; dot -Tplain g.dot | tail -1; fdp -Tpdf g.dot | wc -c; echo 'digraph {' | dot 2>&1 || echo $?", files={"g.dot": "digraph { " + "".join(f"n{i} -> n{i * 7 % 40} [label=\"{i}\"];" for i in range(80)) + "}\n"}, needs="dot:graphviz", version="dot -V 2>&1", traced="dot neato fdp", runs=2),
        Program("glxgears", DISPLAY + "timeout -s INT 6 glxgears -info > out 2>&1 & gears=$!; window glxgears; wait $gears || true; grep -E 'GL_RENDERER|GL_VERSION' out; glxinfo -B | grep -E 'direct rendering|OpenGL vendor|Accelerated'; finish", needs="glxgears:mesa-utils Xvfb:xvfb xwininfo:x11-utils", traced="glxgears Xvfb glxinfo", version="dpkg-query -Wf '${Version}' libgl1-mesa-dri", timeout=150, runs=2),
        Program("GTK", DISPLAY + "./program; zenity --info --text=hello --timeout=2 2>/dev/null & z=$!; window Information; wait $z || echo $?; finish", prepare="gcc -w main.c -o program $(pkg-config --cflags --libs gtk+-3.0)", files={"main.c": GTK}, needs="Xvfb:xvfb gtk-3.0/gtk/gtk.h:libgtk-3-dev pkg-config:pkg-config xwininfo:x11-utils zenity:zenity", traced="program zenity Xvfb",
                version="pkg-config --modversion gtk+-3.0", timeout=150, runs=2, compare="stdout status"),
        Program("Qt", DISPLAY + "./program; QT_QPA_PLATFORM=offscreen ./program; finish", prepare="g++ -w -fPIC main.cpp -o program $(pkg-config --cflags --libs Qt5Widgets)", files={"main.cpp": QT}, needs="Xvfb:xvfb x86_64-linux-gnu/qt5/QtWidgets/QtWidgets:qtbase5-dev pkg-config:pkg-config xwininfo:x11-utils", traced="program Xvfb", version="pkg-config --modversion Qt5Widgets",
                timeout=150, runs=2, compare="stdout status"),
        Program("xterm X11", DISPLAY + "xclock & c=$!; window xclock; xterm -e 'echo in a terminal > said; tput cols > cols' ; cat said cols; xeyes & e=$!; window xeyes; xwd -root -silent | wc -c; kill $c $e; wait $c || true; wait $e || true; finish", needs="xterm:xterm xclock:x11-apps Xvfb:xvfb xwininfo:x11-utils", traced="xterm xclock Xvfb", version="xterm -version", runs=2, compare="stdout status"),
        Program("chromium", "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=$PWD/profile --no-first-run --print-to-pdf=page.pdf --no-pdf-header-footer file://$PWD/page.html 2>/dev/null; pdftotext page.pdf - | md5sum; chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=$PWD/profile --dump-dom file://$PWD/page.html 2>/dev/null | md5sum",
                files={"page.html": PAGE}, needs="chromium:chromium pdftotext:poppler-utils", version="chromium --version", timeout=300, runs=1, limit="64M", compare="stdout status"),
        Program("LibreOffice", "soffice -env:UserInstallation=file://$PWD/profile --headless --convert-to pdf a.fodt > log 2>&1; pdftotext a.pdf - | md5sum; pdfinfo a.pdf | grep Pages; soffice -env:UserInstallation=file://$PWD/profile --headless --convert-to docx a.fodt > log 2>&1; unzip -l a.docx 2>/dev/null | tail -1 || ls a.docx", files={"a.fodt": FLAT},
                needs="soffice:libreoffice-writer-nogui pdftotext:poppler-utils", version="soffice --version", traced="soffice.bin", timeout=300, runs=1, limit="256M", compare="stdout status"),
    ]
