"""A source that offers nothing but SFTP: files are brought here, and an agent here reads them."""
