package configs

import (
	"crypto/sha256"
	"path/filepath"
	"slices"
)

// sight is a disk that remembers what was seen on it: of each file that was
// read its bytes, or why it cannot be read, and of each pattern the names. It is
// what tells later whether anything has moved. One goroutine uses it at a time.
type sight struct {
	disk
	prints map[string][sha256.Size]byte
	globs  map[string][]string
	memo   map[string]reading // so that one load reads a file once
	main   string
	last   string // the last file that was asked for
}

// reading is what one read of a file gave.
type reading struct {
	data []byte
	err  error
}

// newSight has seen nothing yet; main is the file that a load would start with.
func newSight(main string) *sight {
	return &sight{
		disk:   disk{root: filepath.Dir(main)},
		prints: map[string][sha256.Size]byte{},
		globs:  map[string][]string{},
		memo:   map[string]reading{},
		main:   main,
		last:   main,
	}
}

func (s *sight) read(name string) ([]byte, error) {
	s.last = name
	once, done := s.memo[name]
	if !done {
		once.data, once.err = s.disk.read(name)
		s.memo[name] = once
		s.prints[name] = once.print()
	}
	return once.data, once.err
}

func (s *sight) glob(pattern string) ([]string, error) {
	found, err := s.disk.glob(pattern)
	if before, done := s.globs[pattern]; done {
		return slices.Clone(before), err // one load sees one folder
	}
	s.globs[pattern] = found
	return slices.Clone(found), err
}

// print tells readings apart, and none with bytes from one without.
func (r reading) print() [sha256.Size]byte {
	h := sha256.New()
	if r.err != nil {
		h.Write([]byte("!" + r.err.Error()))
	} else {
		h.Write([]byte("="))
		h.Write(r.data)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// forget lets go of the bytes, which are needed while loading only.
func (s *sight) forget() { s.memo = nil }

// moved returns the file or the pattern that is no longer as it was seen, or "".
func (s *sight) moved() string {
	for pattern, before := range s.globs {
		if now, _ := s.disk.glob(pattern); !slices.Equal(now, before) {
			return pattern
		}
	}
	for name, before := range s.prints {
		if s.look(name) != before {
			return name
		}
	}
	return ""
}

// again sees the same files and patterns anew, with what the patterns match now.
func (s *sight) again() *sight {
	now := newSight(s.main)
	for name := range s.prints {
		now.prints[name] = s.look(name)
	}
	for pattern := range s.globs {
		found, _ := s.disk.glob(pattern)
		now.globs[pattern] = found
		for _, name := range found {
			if _, seen := now.prints[name]; !seen {
				now.prints[name] = s.look(name)
			}
		}
	}
	return now
}

func (s *sight) look(name string) [sha256.Size]byte {
	var r reading
	r.data, r.err = s.disk.read(name)
	return r.print()
}

// within tells whether all that was seen is among what other has seen.
func (s *sight) within(other *sight) bool {
	for name := range s.prints {
		if _, seen := other.prints[name]; !seen {
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
