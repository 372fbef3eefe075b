package main

import (
	"bufio"
	"bytes"
	"context"
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

func (w *wire) readStream(ctx context.Context, client *http.Client, url, model string) (stream, error) {
	var s stream
	begun := time.Now()
	r, err := post(ctx, client, url, "application/json", w.request(model, `"stream":true,`))
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

// post sends a body. The body of the answer must be closed.
func post(ctx context.Context, client *http.Client, url, media, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", media)
	return client.Do(request)
}

// newClient keeps so many connections.
func newClient(connections int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
}

// firstTokens are short streams one after the other, 400 of them a round.
func firstTokens(w *wire) *benchCase {
	const streams = 400
	metrics := []metric{costOf("stream"), latencyOf("first token, µs")}
	return &benchCase{name: over("first token", 1), metrics: metrics, streams: true,
		load: func(ctx context.Context, s *subject) (sample, error) {
			var times []float64
			var left atomic.Int64
			left.Store(streams)
			got, err := s.streams(ctx, w, shortModel, shortChunks, 1, func() bool { return left.Add(-1) >= 0 }, func(one stream) {
				if one.first > 0 { // else it was cut before
					times = append(times, float64(one.first.Microseconds()))
				}
			})
			if err == nil && len(times) < streams/2 {
				err = fmt.Errorf("%d of %d streams had text", len(times), streams)
			}
			if err == nil {
				got.latency = spreadOf(times).median
			}
			return got, err
		}}
}

// manyStreams are streams of so many chunks, over many connections.
func manyStreams(w *wire, model string, chunks, seconds int) *benchCase {
	name := over(fmt.Sprintf("streams of %d chunks", chunks), streamConnections)
	return &benchCase{name: name, metrics: []metric{costOf("stream"), rateOf("stream")}, streams: true,
		load: func(ctx context.Context, s *subject) (sample, error) {
			end := time.Now().Add(time.Duration(seconds) * time.Second)
			return s.streams(ctx, w, model, chunks, streamConnections, func() bool { return time.Now().Before(end) }, func(stream) {})
		}}
}

// streams reads streams over so many connections while there are more, and gives
// each to each, which is called at once by as many. Its rate and its cost are
// those of whole streams.
func (s *subject) streams(ctx context.Context, w *wire, model string, chunks, connections int, more func() bool,
	each func(stream)) (sample, error) {
	var done, cut atomic.Int64
	began, before := time.Now(), processorTime(s.pid)
	err := together(connections, more, func(client *http.Client) error {
		got, err := w.readStream(ctx, client, s.url, model)
		if errors.Is(err, errStatus) || ctx.Err() != nil {
			return err
		}
		done.Add(1)
		if err != nil || !got.whole || got.text != chunks*len(piece) {
			cut.Add(1)
		}
		each(got)
		return nil
	})
	whole := float64(done.Load() - cut.Load())
	if err == nil && whole == 0 {
		err = fmt.Errorf("none of %d streams was whole", done.Load())
	}
	return sample{
		cost: float64((processorTime(s.pid) - before).Microseconds()) / whole,
		rate: whole / time.Since(began).Seconds(),
		done: int(done.Load()), cut: int(cut.Load()),
	}, err
}

// together does one thing again and again, over so many connections, while there
// is more to do and until it fails.
func together(connections int, more func() bool, do func(*http.Client) error) error {
	client := newClient(connections)
	defer client.CloseIdleConnections()
	var all sync.WaitGroup
	failures := make(chan error, connections)
	for range connections {
		all.Go(func() {
			for more() {
				if err := do(client); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	all.Wait()
	close(failures)
	return <-failures
}
