package native

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/refusal"
)

// The keys of what a request carries with it.
const (
	keyTrace   = "callgate.trace"
	keyRefused = "callgate.refused"
	keyAsked   = "callgate.asked"
)

// note remembers why a request was refused, for its line in the log.
func note(c *gin.Context, refused *refusal.Error) {
	if refused != nil {
		c.Set(keyRefused, refused)
	}
}

// observe continues the trace, counts the request, and writes its line.
func (f *Face) observe(c *gin.Context) {
	start := time.Now()
	route := c.FullPath()
	if route == "" {
		route = "none"
	}
	trace, parent := continueTrace(c.Request.Header[http.CanonicalHeaderKey(headerTrace)])
	c.Set(keyTrace, trace)
	c.Header(headerTrace, parent)
	done := f.options.Metrics.Request(route)
	defer func() {
		status := c.Writer.Status()
		done(status)
		f.line(c, route, status, time.Since(start))
	}()
	c.Next()
}

// line writes what happened to one request: nothing in it is a value of the
// model, a credential, or a name that a caller chose.
func (f *Face) line(c *gin.Context, route string, status int, took time.Duration) {
	level := slog.LevelInfo
	attributes := []slog.Attr{
		slog.String("method", method(c.Request.Method)), slog.String("route", route), slog.Int("status", status),
		slog.Int64("micros", took.Microseconds()), slog.String("call_id", c.Writer.Header().Get(headerCallID)),
		slog.String("trace_id", c.GetString(keyTrace)),
	}
	if v, ok := c.Get(keyRefused); ok {
		refused := v.(*refusal.Error)
		attributes = append(attributes, slog.String("stage", string(refused.Stage)), slog.String("code", string(refused.Code)))
		if refused.Cause != nil {
			attributes = append(attributes, slog.String("cause", refused.Cause.Error()))
		}
		if status >= http.StatusInternalServerError {
			level = slog.LevelError
		}
	}
	f.options.Log.LogAttrs(detached(c), level, "request", attributes...)
}

// method names a method that HTTP defines; any other is the caller's own word.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodOptions, http.MethodPatch:
		return m
	}
	return "other"
}

// contain turns a panic into an answer. The log is told of what kind it was: its
// value may hold what a caller sent. The caller is told nothing.
func (f *Face) contain(c *gin.Context) {
	defer func() {
		if p := recover(); p != nil {
			refused := refusal.From(refusal.Any, fmt.Errorf("panic: %s", kindOf(p)))
			if c.Writer.Written() {
				note(c, refused)
				c.Abort()
				return
			}
			f.refuse(c, refused)
		}
	}()
	c.Next()
}

// kindOf is what may be told of a panic: the words of the runtime's own, else a
// type.
func kindOf(p any) string {
	if e, ok := p.(runtime.Error); ok {
		return e.Error()
	}
	return fmt.Sprintf("%T", p)
}

// bound refuses what comes while too many requests are being answered.
func (f *Face) bound(c *gin.Context) {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
		c.Next()
	default:
		f.refuse(c, f.shed())
	}
}

// shed is the refusal for what is too much.
func (f *Face) shed() *refusal.Error {
	f.options.Metrics.Shed()
	refused := refusal.New(refusal.Overloaded, "Too many requests are being answered: wait 1000 ms, then send the same request again.")
	refused.RetryAfterMS = 1000
	return refused
}

// receive reads the request. What its body holds counts until it is answered.
func (f *Face) receive(c *gin.Context) {
	body := &counted{ReadCloser: c.Request.Body, held: &f.held, most: f.options.MostHeld}
	defer func() { f.held.Add(-body.read) }()
	request, refused := f.read(c, body)
	if refused != nil {
		f.refuse(c, refused)
		return
	}
	c.Set(keyAsked, request)
	c.Next()
}

// counted is a body whose bytes are counted among those of all.
type counted struct {
	io.ReadCloser
	held *atomic.Int64
	most int64
	read int64
}

var errHeld = errors.New("too many bytes of bodies are held")

func (b *counted) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if b.held.Add(int64(n)) > b.most {
		return n, errHeld
	}
	return n, err
}

// continueTrace takes the trace of a traceparent (W3C Trace Context, version 00)
// or starts one, and returns the header to answer with: the same trace, a span
// of our own.
func continueTrace(values []string) (trace, parent string) {
	flags := "00"
	if len(values) == 1 {
		trace, flags = parseTraceparent(values[0])
	}
	if trace == "" {
		trace, flags = randomHex(16), "00"
	}
	return trace, "00-" + trace + "-" + randomHex(8) + "-" + flags
}

// parseTraceparent returns trace id and flags, or nothing where the header is not
// of the form.
func parseTraceparent(value string) (trace, flags string) {
	parts := strings.Split(value, "-")
	if len(parts) != 4 || parts[0] != "00" || len(parts[1]) != 32 || len(parts[2]) != 16 || len(parts[3]) != 2 {
		return "", ""
	}
	for _, p := range parts[1:] {
		if strings.Trim(p, "0123456789abcdef") != "" {
			return "", ""
		}
	}
	if strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return "", ""
	}
	return parts[1], parts[3]
}

func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}
