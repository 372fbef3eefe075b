package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// posts sends answers, and counts how they were answered. It is safe for concurrent
// use.
type posts struct {
	client   *http.Client
	patience time.Duration // how long an answer is tried again
	room     chan struct{} // holds a token for each that is being sent

	mu      sync.Mutex
	counts  map[string]map[string]int
	retries int
}

const (
	mostPosts  = 128
	postTime   = 30 * time.Second
	firstPause = 20 * time.Millisecond
	maxPause   = time.Second
)

func newPosts(patience time.Duration) *posts {
	return &posts{
		client: &http.Client{
			Timeout:       postTime,
			Transport:     &http.Transport{MaxIdleConnsPerHost: mostPosts},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		patience: patience, room: make(chan struct{}, mostPosts), counts: map[string]map[string]int{},
	}
}

// send posts a message until it is answered with another status than 5xx, or
// patience ends.
func (p *posts) send(ctx context.Context, kind, url string, m any) {
	body, err := json.Marshal(m)
	if err != nil {
		p.count(kind, "broken")
		return
	}
	p.room <- struct{}{}
	defer func() { <-p.room }()
	end := time.Now().Add(p.patience)
	pauses := backoff.ExponentialBackOff{InitialInterval: firstPause, Multiplier: 2, MaxInterval: maxPause}
	for {
		status := p.once(ctx, url, body)
		if status != 0 && status < http.StatusInternalServerError {
			p.count(kind, strconv.Itoa(status))
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(pauses.NextBackOff()):
		}
		if ctx.Err() != nil || time.Now().After(end) {
			p.count(kind, "given up")
			return
		}
		p.mu.Lock()
		p.retries++
		p.mu.Unlock()
	}
}

// once is the status of one attempt; 0 where there is none.
func (p *posts) once(ctx context.Context, url string, body []byte) int {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return http.StatusBadRequest // it cannot be sent at any time
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := p.client.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxBody)) // what it says is nothing to a tool
	return response.StatusCode
}

func (p *posts) count(kind, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.counts[kind] == nil {
		p.counts[kind] = map[string]int{}
	}
	p.counts[kind][what]++
}

func (p *posts) report() map[string]map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := map[string]map[string]int{}
	for kind, counts := range p.counts {
		all[kind] = maps.Clone(counts)
	}
	return all
}

func (p *posts) retried() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.retries
}
