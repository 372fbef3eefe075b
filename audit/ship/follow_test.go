package ship

import (
	"context"
	"errors"
	"io/fs"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/audit/internal/logfile"
)

// A log that rotates its files between their listing and the opening of one has not lost the
// records in the files that were not listed.
func TestRotatedSinceItWasListed(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(dir, audit.Options{Wait: time.Minute, RotateBytes: 1000, Preallocate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	write := func() {
		for range 12 {
			if err := log.Append(context.Background(), audit.Record{Time: time.Now(), Event: audit.Decision, Mode: audit.Call, CallID: "call_1", Verdict: audit.Text}); err != nil {
				t.Fatal(err)
			}
		}
	}
	write()
	before, err := list(dir)
	if err != nil {
		t.Fatal(err)
	}
	write()
	after, err := list(dir)
	if err != nil || len(after) < len(before)+2 {
		t.Fatalf("%d files, and then %d, %v", len(before), len(after), err)
	}
	unlisted := append(before[:len(before):len(before)], after[len(after)-1]) // as if the newest was looked at last
	last, _ := log.Last()
	for _, files := range [][]listed{before, unlisted} {
		for at := range last {
			f := &follower{dir: dir, durable: log.Last, at: logfile.Link{Seq: at}}
			err := f.openOf(files, 0)
			if err == nil {
				var first uint64
				if first, err = seqOf(f.file); err == nil && first > at+1 {
					t.Errorf("behind %d it opens the file that begins with %d", at, first)
				}
			}
			if err != nil && !errors.Is(err, errNotYet) && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			f.close()
			if err := f.open(0); err != nil {
				t.Errorf("behind %d, listed again: %v", at, err)
			}
			f.close()
		}
	}
}
