// Package reload keeps a serving process up to date with its configuration files: it reads
// the files at intervals, loads them once they have stopped changing, and hands a valid
// configuration over whole. A configuration that does not load changes nothing.
package reload
