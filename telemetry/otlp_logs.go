package telemetry

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/proto"
)

// LogRecord is one record of a log as a collector gets it. Its texts are UTF-8.
type LogRecord struct {
	Time    time.Time
	Event   string
	Warn    bool   // its severity is WARN, not INFO
	TraceID string // 32 hex digits; anything else is left out
	Body    string
	// Attributes are texts, whole numbers (int64) and lists of texts ([]string).
	Attributes []LogAttribute
}

// LogAttribute is an attribute of a LogRecord.
type LogAttribute struct {
	Key   string
	Value any
}

// Logs takes records of a log to an OpenTelemetry collector. It keeps nothing and tries
// nothing again: its caller does. It is safe for concurrent use.
type Logs struct {
	timeout   time.Duration
	collector *collector
}

// LogOptions say where the records of a log go.
type LogOptions struct{ CollectorOptions }

// Validate tells what is wrong with the options.
func (o LogOptions) Validate() error { return o.validate(logsPath) }

// NewLogs returns an exporter. The caller must Close it.
func NewLogs(o LogOptions) (*Logs, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c, err := newCollector(o.CollectorOptions, logsPath, "log records")
	if err != nil {
		return nil, err
	}
	return &Logs{timeout: cmp.Or(o.Timeout, 10*time.Second), collector: c}, nil
}

// Close closes the connections.
func (l *Logs) Close() { l.collector.http.CloseIdleConnections() }

// ErrRefused is the answer of a collector to a request that it would not take later either: it
// is too long for it, or it cannot read it.
var ErrRefused = errors.New("the collector does not take the request")

// Export sends records once, in one request. rejected is how many of them the collector took the
// request without. With an error it took none: an error that is ErrRefused is about the
// request, any other about the way there, the credential, or the collector.
func (l *Logs) Export(ctx context.Context, records []LogRecord) (rejected uint64, err error) {
	scope := &wire.ScopeLogs{Scope: &common.InstrumentationScope{Name: "callgate"}}
	for i := range records {
		scope.LogRecords = append(scope.LogRecords, records[i].wire())
	}
	body, err := proto.Marshal(&wire.LogsData{ResourceLogs: []*wire.ResourceLogs{{Resource: l.collector.resource, ScopeLogs: []*wire.ScopeLogs{scope}}}})
	if err != nil {
		return 0, errors.Join(ErrRefused, errors.New("the records cannot be encoded"))
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
	defer cancel()
	_, err = l.collector.send(ctx, body)
	var without *rejectedError
	var status statusError
	switch {
	case errors.As(err, &without):
		return without.count, nil
	case errors.As(err, &status) && (status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity):
		return 0, errors.Join(ErrRefused, err)
	}
	return 0, err
}

// wire is the record in OpenTelemetry's form.
func (r *LogRecord) wire() *wire.LogRecord {
	at := uint64(max(r.Time.UnixNano(), 0))
	w := &wire.LogRecord{
		TimeUnixNano: at, ObservedTimeUnixNano: at, EventName: r.Event,
		SeverityNumber: wire.SeverityNumber_SEVERITY_NUMBER_INFO, SeverityText: "INFO", Body: anyValue(r.Body),
	}
	if r.Warn {
		w.SeverityNumber, w.SeverityText = wire.SeverityNumber_SEVERITY_NUMBER_WARN, "WARN"
	}
	if id, err := hex.DecodeString(r.TraceID); err == nil && len(id) == 16 {
		w.TraceId = id
	}
	for _, a := range r.Attributes {
		w.Attributes = append(w.Attributes, &common.KeyValue{Key: a.Key, Value: anyValue(a.Value)})
	}
	return w
}

// anyValue is a value in OpenTelemetry's form.
func anyValue(value any) *common.AnyValue {
	switch v := value.(type) {
	case string:
		return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: v}}
	case int64:
		return &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: v}}
	case []string:
		list := &common.ArrayValue{}
		for _, text := range v {
			list.Values = append(list.Values, anyValue(text))
		}
		return &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: list}}
	}
	return &common.AnyValue{}
}
