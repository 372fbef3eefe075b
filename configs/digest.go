package configs

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"maps"
	"slices"
)

// content is one file of a configuration: its name, the name by which it enters the digest,
// and its bytes.
type content struct {
	name, relative string
	data           []byte
}

// addFile notes that a file is part of the configuration, and by which name it enters
// the digest.
func (l *loader) addFile(name, relative string, data []byte) {
	l.contents = append(l.contents, content{name, relative, data})
}

// FilesChangedSince returns the files of which this configuration has other bytes than one before,
// those that it does not have any more, and those that it has for the first time, by their names.
func (c *Config) FilesChangedSince(before *Config) []string {
	old := map[string][]byte{}
	for _, file := range before.contents {
		old[file.name] = file.data
	}
	var changed []string
	for _, file := range c.contents {
		if data, known := old[file.name]; !known || !bytes.Equal(data, file.data) {
			changed = append(changed, file.name)
		}
		delete(old, file.name)
	}
	changed = slices.AppendSeq(changed, maps.Keys(old))
	slices.Sort(changed)
	return slices.Compact(changed)
}

// digestOf is the digest of a configuration of these files.
func digestOf(contents []content) string {
	var entries []string
	for _, file := range contents {
		entry := binary.AppendUvarint(nil, uint64(len(file.relative)))
		entry = append(entry, file.relative...)
		entry = binary.AppendUvarint(entry, uint64(len(file.data)))
		entries = append(entries, string(append(entry, file.data...)))
	}
	slices.Sort(entries)
	h := sha256.New()
	for _, entry := range entries {
		_, _ = io.WriteString(h, entry) // a hash takes all
	}
	return hex.EncodeToString(h.Sum(nil))
}
