// Package demo holds the built-in tools for trying the gateway out: a search over a
// small bundled corpus, reading files of the project, the time and arithmetic; and the
// project that they are tried on. They are bounded by the size of their input, and
// change nothing.
package demo
