// Package reload keeps a serving process at what its configuration files say: it looks at
// the files in intervals, loads them once they are at rest, and hands a valid configuration
// over whole. A configuration that does not load changes nothing.
package reload
