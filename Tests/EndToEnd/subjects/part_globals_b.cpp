int a_value();
static int of_b = a_value() + 1;
int b_value() { return of_b; }
