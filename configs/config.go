package configs

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/callgate/callgate/registry"
)

// Config is one whole configuration, validated. It is immutable.
type Config struct {
	Settings
	Tools *registry.Registry
	// Digest is SHA-256, in hex, over the names and bytes of all files, relative
	// to the main one: replicas with equal files have equal digests.
	Digest string
	// Files are the files that it was read from, the main one first.
	Files    []string
	Warnings []*Fault
}

// Load reads the configuration whose main file is path; empty means the
// embedded default. Its error is Faults, which name every file and line.
func Load(path string) (*Config, error) {
	if path == "" {
		return load(builtin{}, builtinName+"callgate.yaml")
	}
	return load(disk{root: filepath.Dir(path)}, path)
}

// loader gathers what one load reads.
type loader struct {
	source
	report report
	files  []string
	digest [][]byte // one entry a file: its relative name and its bytes
}

func load(from source, main string) (*Config, error) {
	l := &loader{source: from}
	data, ok := l.file(main, nil)
	if !ok {
		return nil, l.report.err()
	}
	root, ok := readYAML(&l.report, main, data)
	if !ok {
		return nil, l.report.err()
	}
	c := &Config{Settings: readSettings(root)}
	dir := l.dir(main)
	entries := l.tools(root, dir, c.Registry)
	if len(l.report.faults) == 0 {
		c.Tools = buildRegistry(&l.report, entries)
	}
	if err := l.report.err(); err != nil {
		return nil, err
	}
	c.Digest, c.Files, c.Warnings = l.sum(), l.files, l.report.warnings
	return c, nil
}

// file reads one file; at is where it is named, for the fault.
func (l *loader) file(name string, at *node) ([]byte, bool) {
	data, err := l.read(name)
	if err != nil {
		if at != nil {
			at.fail("%s: %v", name, err)
		} else {
			l.report.add(&Fault{File: name, Message: err.Error()})
		}
		return nil, false
	}
	l.files = append(l.files, name)
	relative := l.relative(name)
	entry := binary.AppendUvarint(nil, uint64(len(relative)))
	entry = append(entry, relative...)
	entry = binary.AppendUvarint(entry, uint64(len(data)))
	l.digest = append(l.digest, append(entry, data...))
	return data, true
}

func (l *loader) sum() string {
	slices.SortFunc(l.digest, func(a, b []byte) int { return strings.Compare(string(a), string(b)) })
	h := sha256.New()
	for _, entry := range l.digest {
		h.Write(entry)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// tools reads every file that a pattern matches, once.
func (l *loader) tools(root node, dir string, patterns []string) []toolEntry {
	at := root.at("/registry/files")
	var entries []toolEntry
	seen := map[string]bool{}
	for _, pattern := range patterns {
		found, err := l.glob(l.resolve(dir, pattern))
		if err != nil {
			at.fail("found the pattern %q, which is malformed; expected a path, or one with * and ?", pattern)
			continue
		}
		if len(found) == 0 {
			at.fail("no file matches %q; expected at least one tool file", pattern)
		}
		for _, name := range found {
			if seen[name] {
				continue
			}
			seen[name] = true
			if data, ok := l.file(name, &at); ok {
				entries = append(entries, readTools(&l.report, name, data)...)
			}
		}
	}
	if len(patterns) == 0 {
		at.fail("found an empty list; expected at least one tool file")
	}
	return entries
}

// String names a configuration for people.
func (c *Config) String() string {
	return fmt.Sprintf("%s (%d tools, digest %.12s)", c.Files[0], len(c.Tools.Entries()), c.Digest)
}
