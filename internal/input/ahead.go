package input

import (
	"bytes"
	"io"

	"github.com/callgate/callgate/internal/safe"
)

// The bounds of what Ahead holds: together 1 MiB.
const (
	aheadPieces = 64
	aheadPiece  = 16 << 10
)

// Ahead reads from before it is asked to, at most 1 MiB ahead, so that the end of from is seen even
// while nobody takes what came before it. The channel is closed at that end, which may be an error,
// or a panic of from. The reader gives all that came before the end, and then the end; it gives
// io.EOF once done is closed. A read of from that does not return is left behind.
func Ahead(from io.Reader, done <-chan struct{}) (io.Reader, <-chan struct{}) {
	a := &ahead{pieces: make(chan []byte, aheadPieces), done: done}
	ended := make(chan struct{})
	go func() {
		defer close(a.pieces)
		defer close(ended)
		buffer := make([]byte, aheadPiece)
		for a.err == nil {
			n := 0
			a.err = safe.Do(func() (err error) {
				n, err = from.Read(buffer)
				return err
			})
			if n == 0 {
				continue
			}
			select {
			case a.pieces <- bytes.Clone(buffer[:n]):
			case <-done:
				return
			}
		}
	}()
	return a, ended
}

type ahead struct {
	pieces chan []byte
	rest   []byte // of a piece
	done   <-chan struct{}
	err    error // the end of from, once pieces is closed
}

func (a *ahead) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		var more bool
		select {
		case a.rest, more = <-a.pieces:
			switch {
			case more:
			case a.err != nil:
				return 0, a.err
			default:
				return 0, io.EOF
			}
		case <-a.done:
			return 0, io.EOF
		}
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}
