//! Programs in other languages: which there are, how they are built, what they did. Knows no mechanism but the pipe between them.
