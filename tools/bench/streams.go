package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// stream reads one streamed completion to its end.
type stream struct {
	text  int           // bytes
	first time.Duration // until the first of them
	whole bool          // it ended with the mark of the end, and nothing after
}

var errStatus = errors.New("the request was refused")

func (w *wire) readStream(client *http.Client, url, model string) (stream, error) {
	var s stream
	begun := time.Now()
	r, err := client.Post(url, "application/json", strings.NewReader(w.request(model, `"stream":true,`)))
	if err != nil {
		return s, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return s, fmt.Errorf("%w: %s", errStatus, r.Status)
	}
	lines := bufio.NewReaderSize(r.Body, 64<<10) // a line may repeat a whole text
	for {
		line, err := lines.ReadSlice('\n')
		switch {
		case bytes.Contains(line, []byte(w.beforeBit)):
			text := w.pieceOf(line)
			if s.text == 0 && len(text) > 0 {
				s.first = time.Since(begun)
			}
			s.text += len(text)
		case bytes.HasPrefix(line, []byte(w.last)):
			s.whole = true
		case len(bytes.TrimSpace(line)) > 0:
			s.whole = false
		}
		if errors.Is(err, io.EOF) {
			return s, nil
		}
		if err != nil {
			s.whole = false
			return s, err
		}
	}
}

// newClient keeps so many connections.
func newClient(connections int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
}

const firstTokens = 400

// firstToken is the median time until the first token, in microseconds. Streams
// that a proxy cuts before it are left out.
func (b chatBench) firstToken(s *subject) (float64, error) {
	client := newClient(1)
	defer client.CloseIdleConnections()
	var times []float64
	for range firstTokens {
		got, err := b.wire.readStream(client, s.url, shortModel)
		if errors.Is(err, errStatus) {
			return 0, err
		}
		if got.first > 0 {
			times = append(times, float64(got.first.Microseconds()))
		}
	}
	if len(times) < firstTokens/2 {
		return 0, fmt.Errorf("%d of %d streams had text", len(times), firstTokens)
	}
	return median(times), nil
}

// longStreams is how many pieces of text of the model's arrive in a second, over
// so many connections. One that is not whole counts for nothing: a proxy cuts
// some.
func (b chatBench) longStreams(s *subject) (float64, error) {
	var received atomic.Int64
	end := time.Now().Add(time.Duration(b.seconds) * time.Second)
	begun := time.Now()
	err := b.together(func(client *http.Client) (bool, error) {
		got, err := b.wire.readStream(client, s.url, longModel)
		if errors.Is(err, errStatus) {
			return false, err
		}
		if err == nil && got.whole && got.text == longChunks*len(piece) {
			received.Add(int64(got.text))
		}
		return time.Now().Before(end), nil
	})
	return float64(received.Load()) / float64(len(piece)) / time.Since(begun).Seconds(), err
}

// shortStreams is how many streams of its share did not end as they should.
func (b chatBench) shortStreams(s *subject) (float64, error) {
	var sent, cut atomic.Int64
	share := int64((b.streams + b.rounds - 1) / b.rounds)
	err := b.together(func(client *http.Client) (bool, error) {
		if sent.Add(1) > share {
			return false, nil
		}
		got, err := b.wire.readStream(client, s.url, shortModel)
		if errors.Is(err, errStatus) {
			return false, err
		}
		if err != nil || !got.whole || got.text != shortChunks*len(piece) {
			cut.Add(1)
		}
		return true, nil
	})
	return float64(cut.Load()), err
}

// together does one thing again and again, over so many connections, until it
// is false or fails.
func (b chatBench) together(do func(*http.Client) (bool, error)) error {
	client := newClient(b.connections)
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	failures := make(chan error, b.connections)
	for range b.connections {
		all.Go(func() {
			for {
				more, err := do(client)
				if err != nil {
					failures <- err
				}
				if err != nil || !more {
					return
				}
			}
		})
	}
	all.Wait()
	close(failures)
	return <-failures
}
