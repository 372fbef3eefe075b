package ship_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/callgate/callgate/audit"
)

// A file whose last records are not as they were written keeps none of the following files from
// the collector.
func TestDamagedEndOfFile(t *testing.T) {
	for name, damage := range map[string]func(end []byte) []byte{
		"another text":         func(end []byte) []byte { return append(bytes.Repeat([]byte("x"), len(end)-1), '\n') },
		"without its line end": func(end []byte) []byte { return end[:len(end)-1] },
		"cut":                  func(end []byte) []byte { return end[:len(end)/2] },
	} {
		t.Run(name, func(t *testing.T) {
			s := newShipping(t, 5_000)
			s.start()
			s.write(1)
			s.awaitAll()
			closeNow(s.shipper)
			s.write(60)
			files, err := audit.Files(s.dir)
			if err != nil || len(files) < 4 {
				t.Fatal(files, err)
			}
			content, err := os.ReadFile(files[1])
			if err != nil {
				t.Fatal(err)
			}
			lines := bytes.SplitAfter(content, []byte("\n"))
			end := lines[len(lines)-2]
			if err := os.WriteFile(files[1], append(content[:len(content)-len(end)], damage(end)...), 0o600); err != nil {
				t.Fatal(err)
			}
			s.start()
			s.awaitAll()
			if s.lost.Load() != 1 || s.shipped.Load() != 60 {
				t.Errorf("%d lost, %d shipped, want 1 and 60", s.lost.Load(), s.shipped.Load())
			}
		})
	}
}
