package server

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
)

// LogRefusal remembers why a request was refused, for its line in the log. Nil is no
// refusal.
func LogRefusal(c *gin.Context, refused *refusal.Error) {
	if refused != nil {
		c.Set(keyRefused, refused)
	}
}

// RetryAfter sets the header of that name, in whole seconds, if the refusal is one
// that passes (RFC 9110, section 10.2.3).
func RetryAfter(c *gin.Context, refused *refusal.Error) {
	status := refused.Status()
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return
	}
	seconds := max((refused.RetryAfterMS+999)/1000, 1)
	c.Header("Retry-After", strconv.FormatInt(seconds, 10))
}

// observe continues the trace, counts the request, and writes its line.
func (s *Server) observe(c *gin.Context) {
	start := time.Now()
	route := c.FullPath()
	if route == "" {
		route = "none"
	}
	t := continueTrace(c.Request.Header[headerTrace])
	c.Set(keyTrace, t)
	c.Header(headerTrace, t.responseHeader())
	done := s.options.Metrics.Request(route)
	defer func() {
		status := c.Writer.Status()
		done(status)
		s.logRequest(c, route, status, time.Since(start))
	}()
	c.Next()
}

// logRequest logs one request. Nothing in the line is a value of the model, a credential, or a
// name that a caller chose. Requests without an identified caller share a bound of lines, and
// those that failed another; a later request, or Drain, logs how many were suppressed.
func (s *Server) logRequest(c *gin.Context, route string, status int, took time.Duration) {
	now := time.Now()
	s.logSuppressed(c.Request.Context(), now, false)
	v, _ := c.Get(keyRefused)
	refused, _ := v.(*refusal.Error)
	level := slog.LevelInfo
	// An answer that began well may still end in a refusal.
	if refused != nil && max(status, refused.Status()) >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	if !c.GetBool(keyIdentified) && !s.strangerLines.allow(now, level) {
		return
	}
	attributes := []slog.Attr{
		slog.String("method", methodName(c.Request.Method)), slog.String("route", route), slog.Int("status", status),
		slog.Int64("micros", took.Microseconds()), slog.String("call_id", c.Writer.Header().Get(HeaderCallID)),
		slog.String("trace_id", traceOf(c).id),
	}
	if refused != nil {
		attributes = append(attributes, slog.String("stage", string(refused.Stage)), slog.String("code", string(refused.Code)))
		if refused.Cause != nil {
			attributes = append(attributes, slog.String("cause", refused.Cause.Error()))
		}
	}
	s.options.Log.LogAttrs(context.WithoutCancel(c.Request.Context()), level, "request", attributes...)
}

// logSuppressed logs how many lines were suppressed, if any; with last also those of the
// current second.
func (s *Server) logSuppressed(ctx context.Context, now time.Time, last bool) {
	if n := s.strangerLines.takeSuppressed(now, last); n > 0 {
		s.options.Log.LogAttrs(context.WithoutCancel(ctx), slog.LevelWarn,
			"log lines about requests of unidentified callers suppressed", slog.Int64("suppressed", n))
	}
}

// methodName names a method that HTTP defines; any other is the caller's own word.
func methodName(m string) string {
	switch m {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodOptions, http.MethodPatch:
		return m
	}
	return "other"
}

// recoverPanic turns a panic into a refusal. The log has the kind of the panic, not its value,
// which may hold data of the caller. If the answer has begun, the connection is closed.
func recoverPanic(r Route) gin.HandlerFunc {
	return func(c *gin.Context) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			refused := refusal.From(refusal.Any, safe.PanicError(p))
			if c.Writer.Written() {
				LogRefusal(c, refused)
				panic(http.ErrAbortHandler)
			}
			r.Refuse(c, refused)
		}()
		c.Next()
	}
}
