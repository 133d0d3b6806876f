"""Record batches (magic 2): header view and patching, builder, reader, codecs, validation."""
