"""What people see: tables on the terminal and in files, and the generated pages of the documentation."""
