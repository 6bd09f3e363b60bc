// Nothing is called by name but by the loader: rtld-audit(7).
