//! A durable workflow kernel: a recorded outcome is never recomputed, an effect is never repeated and never silently dropped.
