package server

import (
	"context"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// LogRefusal remembers why a request was refused, for its line in the log. Nil is no
// refusal.
func LogRefusal(c *gin.Context, refused *refusal.Error) {
	if refused != nil {
		responseOf(c).refused = refused
	}
}

// RefusalHeaders sets what the head of a refusal says of how to go on: Retry-After, in whole seconds, if it is one that
// passes, or says when (RFC 9110, section 10.2.3), and the scheme of the credential that is missing (section 11.6.1).
func RefusalHeaders(c *gin.Context, refused *refusal.Error) {
	status := refused.Status()
	if status == http.StatusUnauthorized {
		c.Header("WWW-Authenticate", "Bearer")
	}
	if refused.RetryAfterMS == 0 && status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return
	}
	seconds := max((refused.RetryAfterMS+999)/1000, 1)
	c.Header("Retry-After", strconv.FormatInt(seconds, 10))
}

// observe continues the trace, counts the request, and writes its line.
func (e *endpoint) observe(c *gin.Context) {
	start := time.Now()
	w := responseOf(c)
	var answer string
	w.trace, answer = continueTrace(c.Request.Header[headerTrace])
	w.setHeader(headerTrace, answer)
	e.begin()
	defer func() {
		status := c.Writer.Status()
		e.end(status)
		e.logRequest(w, status, time.Since(start))
	}()
	c.Next()
}

// observeUnknown observes a request that no route takes.
func (s *Server) observeUnknown(c *gin.Context) { s.unknown[methodName(c.Request.Method)].observe(c) }

// logRequest logs one request. Nothing in the line is a value of the model, a credential, or a
// name that a caller chose, but for the tools of its request that are left out. Requests without an
// identified caller share a bound of lines, those that failed another, and those that are beyond a
// bound of the gateway a third, since any caller can send more than it may; a later request, or Drain,
// logs how many were suppressed.
func (e *endpoint) logRequest(w *responseWriter, status int, took time.Duration) {
	now := time.Now()
	e.server.logSuppressed(now, false)
	level := slog.LevelInfo
	// An answer that began well may still end in a refusal.
	switch {
	case w.refused == nil:
	case w.refused.Code == refusal.Overloaded: // the caller's doing, and no failure
		level = slog.LevelWarn
	case max(status, w.refused.Status()) >= http.StatusInternalServerError:
		level = slog.LevelError
	}
	replaced, leftOut := first(w.Header()[HeaderToolsReplaced]), first(w.Header()[HeaderToolsLeftOut])
	if w.refused == nil && status < http.StatusBadRequest && replaced == "" && leftOut == "" && !e.server.sampled() {
		return
	}
	switch {
	case !w.identified:
		if !e.server.strangerLines.allow(now, level) {
			return
		}
	case level == slog.LevelWarn && !e.server.shedLines.allow(now, level):
		return
	}
	log := e.log
	if level > slog.LevelInfo {
		log = e.errorLog
	}
	if !log.Enabled(context.Background(), level) {
		return
	}
	// No place in the source is looked up for a line: it would always be this one.
	line := slog.NewRecord(now, level, "request", 0)
	line.AddAttrs(
		slog.Int("status", status), slog.Int64("micros", took.Microseconds()),
		slog.String("call_id", first(w.Header()[HeaderCallID])), slog.String("trace_id", w.trace.id),
	)
	judged := w.judged.Last()
	if judged.Verdict != "" {
		line.AddAttrs(slog.Attr{Value: slog.GroupValue(w.logJudged(judged)...)})
	}
	if replaced != "" {
		line.AddAttrs(slog.String("tools_replaced", replaced))
	}
	if leftOut != "" {
		line.AddAttrs(slog.String("tools_left_out", leftOut), slog.String("left_out_why", w.leftOut))
	}
	if w.refused == nil && judged.Code != "" {
		line.AddAttrs(slog.String("code", string(judged.Code)))
	}
	if w.refused != nil {
		line.AddAttrs(slog.String("stage", string(w.refused.Stage)), slog.String("code", string(w.refused.Code)))
		if w.refused.Cause != nil {
			line.AddAttrs(slog.String("cause", w.refused.Cause.Error()))
		}
	}
	_ = log.Handle(context.Background(), line) // nobody could be told
}

// logJudged returns the members that say what the last judgement of a request came to.
func (a *responseWriter) logJudged(j gateway.Summary) []slog.Attr {
	attrs := append(a.judgedAttrs[:0], slog.String("verdict", string(j.Verdict)))
	if j.Agent != "" {
		attrs = append(attrs, slog.String("agent", j.Agent))
	}
	if j.Tool != "" {
		attrs = append(attrs, slog.String("tool", j.Tool))
	}
	return attrs
}

// LogRequests sets the share of requests, from 0 to 1, whose line is written though they were
// neither refused nor failed. It starts at 1. It is safe for concurrent use.
func (s *Server) LogRequests(ratio float64) { s.logRatio.Store(math.Float64bits(ratio)) }

// sampled draws whether the line of a request is written.
func (s *Server) sampled() bool {
	ratio := math.Float64frombits(s.logRatio.Load())
	return ratio >= 1 || rand.Float64() < ratio //nolint:gosec // lines are no secrets
}

// logSuppressed logs how many lines were suppressed, if any; with last also those of the
// current second.
func (s *Server) logSuppressed(now time.Time, last bool) {
	if n := s.strangerLines.takeSuppressed(now, last); n > 0 {
		s.options.Log.Warn("log lines about requests of unidentified callers suppressed", "suppressed", n)
	}
	if n := s.shedLines.takeSuppressed(now, last); n > 0 {
		s.options.Log.Warn("log lines about requests beyond a bound suppressed", "suppressed", n)
	}
}

// otherMethod stands for every method that is not of methods: it is the caller's own word.
const otherMethod = "other"

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodHead, http.MethodOptions,
	http.MethodPatch}

// methodName names a method in the log.
func methodName(m string) string {
	if slices.Contains(methods, m) {
		return m
	}
	return otherMethod
}
