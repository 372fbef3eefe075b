package configs

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
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
