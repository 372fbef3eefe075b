package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
)

// Request is a request that was admitted: its caller may use the endpoint, its query has only
// parameters of the endpoint, each at most once, and its body is within its bound.
type Request struct {
	Caller Caller
	// Body is one strict JSON object; nil where the endpoint has no body.
	Body []byte
	// Prefer are the values of the header Prefer (RFC 7240).
	Prefer []string

	ctx   context.Context
	path  func(name string) string
	query url.Values
}

// Context ends when the client leaves.
func (r *Request) Context() context.Context { return r.ctx }

// PathValue returns the value of a wildcard of the path.
func (r *Request) PathValue(name string) string {
	if r.path == nil {
		return ""
	}
	return r.path(name)
}

// Query returns a parameter, or "".
func (r *Request) Query(name string) string { return r.query.Get(name) }

// The bounds of one page of an answer.
const (
	defaultLimit = 50
	maxLimit     = 500
)

// Limit returns the parameter limit: how many entries the answer may have, 50 where it is
// absent. The error is a *refusal.Error.
func (r *Request) Limit() (int, error) {
	text := r.Query("limit")
	if text == "" {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLimit {
		return 0, bad("The parameter limit is not a number from 1 to %d.", maxLimit)
	}
	return n, nil
}

// seq returns a parameter that is the seq of a record; 0 where it is absent.
func (r *Request) seq(name string) (uint64, error) {
	text := r.Query(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, bad("The parameter %s is not the seq of a record.", name)
	}
	return n, nil
}

// page returns the parameters of a page from a position on: how many entries it may have, and the
// position, which a parameter of this name states. The error is a *refusal.Error.
func (r *Request) page(name string) (limit int, at uint64, err error) {
	if limit, err = r.Limit(); err != nil {
		return 0, 0, err
	}
	at, err = r.seq(name)
	return limit, at, err
}

// Choice returns a parameter that must be one of some values, or absent. The error is a
// *refusal.Error.
func (r *Request) Choice(name string, values ...string) (string, error) {
	value := r.Query(name)
	if value != "" && !slices.Contains(values, value) {
		return "", bad("The parameter %s must be one of %s.", name, strings.Join(values, ", "))
	}
	return value, nil
}

// Decode decodes the body into a struct. A member that the struct does not have is refused,
// also where it differs in case only. The error is a *refusal.Error.
func (r *Request) Decode(into any) error {
	if err := knownMembers(r.Body, reflect.TypeOf(into)); err != nil {
		return bad("The body cannot be read: %v.", err)
	}
	if err := json.Unmarshal(r.Body, into); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return bad("The member %s of the body has the wrong type.", strconv.Quote(wrong.Field))
		}
		return bad("The body cannot be read.")
	}
	return nil
}

// knownMembers returns an error if objects have members that their types do not have:
// encoding/json compares names without their case.
func knownMembers(value []byte, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[json.RawMessage]() {
		return nil
	}
	members, ok := rawjson.Map(value)
	if !ok {
		return nil // of the wrong type, which Unmarshal reports
	}
	fields := map[string]reflect.Type{}
	for _, f := range fieldsOf(t) {
		fields[f.name] = f.t
	}
	for name, member := range members {
		f, known := fields[name]
		if !known {
			return fmt.Errorf("found a member that means nothing here; expected only %s", strings.Join(names(t), ", "))
		}
		if err := knownMembers(member, f); err != nil {
			return err
		}
	}
	return nil
}

// maxBodyDepth bounds the nesting of a body. Arguments of calls nest deeper than anything else.
const maxBodyDepth = 128

// read reads the query and the body of a request.
func (a *API) read(w http.ResponseWriter, r *http.Request, e *Endpoint, caller Caller) (*Request, *refusal.Error) {
	request := &Request{Caller: caller, ctx: r.Context(), path: r.PathValue, Prefer: r.Header["Prefer"]}
	query, err := readQuery(r.URL.RawQuery, e.Query)
	if err != nil {
		return nil, err
	}
	request.query = query
	if e.Body == nil {
		if r.ContentLength != 0 {
			return nil, bad("This takes no body.")
		}
		return request, nil
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, refusal.New(refusal.UnsupportedMediaType, "The body must be application/json.")
	}
	longest := int64(DefaultMaxBody)
	if e.MaxBody != nil {
		longest = e.MaxBody()
	}
	leave, err := a.take(a.reading, caller)
	if err != nil {
		return nil, err
	}
	body, readErr := io.ReadAll(http.MaxBytesReader(w, r.Body, longest))
	leave()
	var tooLong *http.MaxBytesError
	switch {
	case errors.As(readErr, &tooLong):
		return nil, refusal.New(refusal.RequestTooLarge, fmt.Sprintf("The body is longer than %d bytes.", longest))
	case readErr != nil:
		return nil, bad("The body could not be read.").WithCause(readErr)
	}
	if _, err := rawjson.ReadMap(body, maxBodyDepth); err != nil {
		return nil, bad("The body is not one strict JSON object: %v.", err)
	}
	request.Body = body
	w.Header().Del("Connection")
	return request, nil
}

// maxQuery bounds a query in bytes.
const maxQuery = 4 << 10

func readQuery(raw string, known []Parameter) (url.Values, *refusal.Error) {
	query, err := url.ParseQuery(raw)
	if err != nil || len(raw) > maxQuery {
		return nil, bad("The query cannot be read, or is longer than %d bytes.", maxQuery)
	}
	for name, values := range query {
		if len(values) > 1 || !slices.ContainsFunc(known, func(p Parameter) bool { return p.Name == name }) {
			return nil, bad("The query may have each of these once, and nothing else: %s.", strings.Join(parameterNames(known), ", "))
		}
	}
	return query, nil
}

func parameterNames(of []Parameter) []string {
	list := make([]string, len(of))
	for i, p := range of {
		list[i] = p.Name
	}
	if len(list) == 0 {
		return []string{"(none)"}
	}
	return list
}

func bad(format string, args ...any) *refusal.Error {
	return refusal.New(refusal.BadRequest, fmt.Sprintf(format, args...))
}
