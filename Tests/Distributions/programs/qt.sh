# packages: g++ pkg-config xvfb fonts-dejavu-core
# packages bullseye bookworm: qtbase5-dev
# packages trixie sid: qt6-base-dev
# records: main Xvfb
# needs: g++ pkg-config Xvfb
# status: 5
# version: pkg-config --modversion Qt6Widgets 2>/dev/null || pkg-config --modversion Qt5Widgets
# timeout: 300
cat >main.cpp <<'END'
#include <QtWidgets>
int main(int count, char **arguments) {
    QApplication application(count, arguments);
    QWidget window;
    QVBoxLayout box(&window);
    QPushButton button("press");
    QLabel label("0");
    QTableWidget table(20, 3);
    box.addWidget(&button), box.addWidget(&label), box.addWidget(&table);
    for (int i = 0; i < 60; i++) table.setItem(i / 3, i % 3, new QTableWidgetItem(QString::number(i * i)));
    int clicks = 0;
    QObject::connect(&button, &QPushButton::clicked, [&] {
        label.setText(QString::number(++clicks));
        if (clicks == 50) application.exit(5);
    });
    QTimer timer;
    QObject::connect(&timer, &QTimer::timeout, &button, &QPushButton::click);
    timer.start(5);
    window.show();
    QPixmap picture = window.grab();
    int status = application.exec();
    printf("%d clicks, label %s, %d, %s\n", clicks, qPrintable(label.text()), picture.width() > 0, qPrintable(QLocale::c().toString(3.5)));
    return status;
}
END
set -- Qt6Widgets
pkg-config --exists Qt6Widgets || set -- Qt5Widgets
g++ -w -fPIC -std=c++17 main.cpp -o main $(pkg-config --cflags --libs "$@")
mkfifo ready
Xvfb -displayfd 9 -screen 0 800x600x24 -nolisten tcp 9>ready 2>xvfb.log &
server=$!
read -r number <ready
DISPLAY=:$number QT_QPA_PLATFORM=xcb QT_X11_NO_MITSHM=1 ./main 2>main.log
status=$?
kill $server
wait $server
exit $status
