"""Who is who: tokens, certificates, signatures, and the files that hold them."""
