"""What leaders and followers decide about a partition: ends, high watermarks, truncation, ISR."""
