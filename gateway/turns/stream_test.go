package turns_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

// TestKeepAlive: a stream shows which tools run, and is kept alive until they have ended.
func TestKeepAlive(t *testing.T) {
	kept := make(chan struct{}, 3)
	got := ends(t, plan{
		script: script{turns: []string{"time_now", "well then"}}, rules: orchestrate, stream: true,
		kept: func() {
			select {
			case kept <- struct{}{}:
			default:
			}
		},
		engine: func(tool.Call) (tool.Result, error) {
			for range cap(kept) {
				<-kept
			}
			return tool.Result{Body: []byte(`{}`), JSON: true}, nil
		},
	})
	if got.failed != nil || len(got.beats) < 3 {
		t.Fatalf("%v, %q", got.failed, got.beats)
	}
	for _, note := range got.beats {
		if note != "running time.now" {
			t.Errorf("found the note %q", note)
		}
	}
}

// TestWaitPanics: a panic of what is waited for is an error, in a stream too.
func TestWaitPanics(t *testing.T) {
	if got := ends(t, plan{script: script{panics: true}, stream: true}); code(got.failed) != refusal.Internal {
		t.Errorf("found %q", code(got.failed))
	}
}

// TestSignsOfLifeEndWithWait: the face writes on once Wait has returned, and no sign of life may
// write beside it.
func TestSignsOfLifeEndWithWait(t *testing.T) {
	began, release := make(chan struct{}, 1), make(chan struct{})
	var beats, over atomic.Int32
	r := turns.Run{KeepAlive: func(string) { // at once, and again and again
		if beats.Add(1) == 1 {
			began <- struct{}{}
			<-release
		}
		over.Add(1)
	}}
	err := r.Wait("", func() error {
		<-began
		time.AfterFunc(20*time.Millisecond, func() { close(release) })
		return io.EOF
	})
	if b, o := beats.Load(), over.Load(); !errors.Is(err, io.EOF) || b != o || b == 0 {
		t.Errorf("%v; %d signs of life began, and %d were sent", err, b, o)
	}
	before := beats.Load()
	time.Sleep(10 * time.Millisecond)
	if beats.Load() != before {
		t.Error("a sign of life came after Wait")
	}
}

// TestSignOfLifePanics: that is an error of Wait too, and the process continues.
func TestSignOfLifePanics(t *testing.T) {
	began := make(chan struct{})
	r := turns.Run{KeepAlive: func(string) { close(began); panic("no") }}
	if err := r.Wait("", func() error { <-began; return nil }); err == nil {
		t.Errorf("found %v", err)
	}
}

// TestClientLeft: a run whose application has left ends as canceled.
func TestClientLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	got := ends(t, plan{script: script{turns: []string{"well then"}, asked: cancel, slow: time.Hour}, ctx: ctx})
	if code(got.failed) != refusal.Canceled {
		t.Errorf("found %q", code(got.failed))
	}
}

// TestWriteUpstream: the provider's own refusal goes through byte for byte, with the headers
// that were kept of it (AM-62, AM-63, RS-80).
func TestWriteUpstream(t *testing.T) {
	body := []byte("{\"type\":\"error\",\n \"error\":{\"message\":\"\u200bthinking\"} }")
	own := &upstream.StatusError{
		Status: 429, Body: body, ContentType: "application/json", RetryAfter: time.Second,
		Header: http.Header{"Retry-After": {"17"}, "Request-Id": {"req_1"}},
	}
	for _, c := range []struct {
		failed *turns.Failure
		retry  string
		writes bool
	}{
		{&turns.Failure{Upstream: own, Retryable: true}, "", true},
		{&turns.Failure{Upstream: own}, "false", true},
		{&turns.Failure{Upstream: &upstream.StatusError{Status: 429}}, "", false},
		{turns.Bad("", "no"), "", false},
	} {
		w := httptest.NewRecorder()
		g, _ := gin.CreateTestContext(w)
		if writes := c.failed.WriteUpstream(g); writes != c.writes {
			t.Fatalf("%+v: written is %v", c.failed, writes)
		} else if !writes {
			continue
		}
		h := w.Header()
		kept := h.Get("Retry-After") == "17" && h.Get("Request-Id") == "req_1"
		if w.Code != 429 || !bytes.Equal(w.Body.Bytes(), body) || !kept || h.Get("X-Should-Retry") != c.retry {
			t.Errorf("found %d %v %s", w.Code, h, w.Body)
		}
	}
}
