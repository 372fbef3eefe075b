package logfile

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// A log that rotates its files between their listing and the opening of one has not lost the records in the files that were not
// listed.
func TestRotatedSinceItWasListed(t *testing.T) {
	r := Reader{Dir: t.TempDir(), Hashed: true}
	newest := filepath.Join(r.Dir, "audit.jsonl")
	at, rotated := Link{Hash: Genesis}, 0
	write := func() {
		for range 3 {
			rotated++
			if err := os.Rename(newest, filepath.Join(r.Dir, fmt.Sprintf("audit-%d.jsonl", rotated))); err != nil && rotated > 1 {
				t.Fatal(err)
			}
			var lines []byte
			for range 4 {
				lines, at = at.Seal(lines, []byte(`"event":"decision"`))
			}
			if err := os.WriteFile(newest, lines, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write()
	before, err := r.list()
	if err != nil {
		t.Fatal(err)
	}
	write()
	after, err := r.list()
	if err != nil || len(after) != 6 {
		t.Fatal(after, err)
	}
	unlisted := append(before[:len(before):len(before)], after[len(after)-1]) // as if the newest was looked at last
	for _, files := range [][]Listed{before, unlisted} {
		for from := range at.Seq {
			next := from + 1
			check := func(_ []byte, at Link) error {
				if at.Seq != next {
					return fmt.Errorf("seq %d in the place of %d", at.Seq, next)
				}
				next++
				return nil
			}
			moved := from + 1
			if err := r.oldest(files, &moved, math.MaxUint64, check); err != nil && !errors.Is(err, ErrMoved) {
				t.Errorf("from %d: %v", from+1, err)
			}
			if next = from + 1; r.Oldest(next, at.Seq, check) != nil || next != at.Seq+1 {
				t.Errorf("from %d, listed again: it ends before %d", from+1, next)
			}
		}
	}
}
