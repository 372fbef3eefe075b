package reload

import (
	"crypto/sha256"
	"slices"

	"github.com/callgate/callgate/configs"
)

// fingerprint reads from the disk and remembers what it found: for each file a hash of its
// bytes, or of the error, and for each pattern the names. It reports later whether anything
// has changed. One goroutine uses it at a time.
type fingerprint struct {
	hashes   map[string][sha256.Size]byte
	globs    map[string][]string
	cache    map[string]fileRead // so that one load reads a file once
	main     string
	lastRead string // the last file that was requested
}

// fileRead is the result of one read of a file.
type fileRead struct {
	data []byte
	err  error
}

// newFingerprint has seen nothing yet; main is the file that a load would start with.
func newFingerprint(main string) *fingerprint {
	return &fingerprint{
		hashes:   map[string][sha256.Size]byte{},
		globs:    map[string][]string{},
		cache:    map[string]fileRead{},
		main:     main,
		lastRead: main,
	}
}

// ReadFile is that of configs.Files. Within one load a file is read once.
func (s *fingerprint) ReadFile(name string) ([]byte, error) {
	s.lastRead = name
	once, done := s.cache[name]
	if !done {
		once.data, once.err = (configs.Disk{}).ReadFile(name)
		s.cache[name] = once
		s.hashes[name] = once.hash()
	}
	return once.data, once.err
}

// Glob is that of configs.Files. Within one load a folder is read once.
func (s *fingerprint) Glob(pattern string) ([]string, error) {
	found, err := (configs.Disk{}).Glob(pattern)
	if before, done := s.globs[pattern]; done {
		return slices.Clone(before), err // one load sees one folder
	}
	s.globs[pattern] = found
	return slices.Clone(found), err
}

// hash tells readings apart, and none with bytes from one without.
func (r fileRead) hash() [sha256.Size]byte {
	h := sha256.New()
	if r.err != nil {
		h.Write([]byte("!" + r.err.Error()))
	} else {
		h.Write([]byte("="))
		h.Write(r.data)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// dropCache lets go of the bytes, which are needed while loading only.
func (s *fingerprint) dropCache() { s.cache = nil }

// changed returns the file or the pattern that is no longer as it was seen, or "".
func (s *fingerprint) changed() string {
	for pattern, before := range s.globs {
		if now, _ := (configs.Disk{}).Glob(pattern); !slices.Equal(now, before) {
			return pattern
		}
	}
	for name, before := range s.hashes {
		if s.hashFile(name) != before {
			return name
		}
	}
	return ""
}

// retake reads the same files and patterns again, with the current matches of the patterns.
func (s *fingerprint) retake() *fingerprint {
	now := newFingerprint(s.main)
	for name := range s.hashes {
		now.hashes[name] = s.hashFile(name)
	}
	for pattern := range s.globs {
		found, _ := (configs.Disk{}).Glob(pattern)
		now.globs[pattern] = found
		for _, name := range found {
			if _, seen := now.hashes[name]; !seen {
				now.hashes[name] = s.hashFile(name)
			}
		}
	}
	return now
}

func (s *fingerprint) hashFile(name string) [sha256.Size]byte {
	var r fileRead
	r.data, r.err = (configs.Disk{}).ReadFile(name)
	return r.hash()
}

// coveredBy reports whether all that was seen is among what other has seen.
func (s *fingerprint) coveredBy(other *fingerprint) bool {
	for name := range s.hashes {
		if _, seen := other.hashes[name]; !seen {
			return false
		}
	}
	for pattern := range s.globs {
		if _, seen := other.globs[pattern]; !seen {
			return false
		}
	}
	return true
}
