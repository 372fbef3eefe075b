package refusal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/refusal"
)

func TestEveryCodeHasStatusAndStage(t *testing.T) {
	for _, c := range refusal.Codes() {
		if s := c.Status(); s < 200 || s > 599 {
			t.Errorf("%s: status %d", c, s)
		}
		if refusal.New(c, "m").Stage == "" {
			t.Errorf("%s: no stage", c)
		}
	}
	if got := refusal.Code("nonsense").Status(); got != 500 {
		t.Errorf("an unknown code has status %d, want 500", got)
	}
}

func TestMarshalOmitsWhatIsAbsentAndHidesTheCause(t *testing.T) {
	e := refusal.New(refusal.UnexpectedArgument, "m").WithCause(errors.New("secret cause"))
	e.Violations = []refusal.Violation{
		{Code: refusal.UnexpectedArgument, Path: "/tool/arguments/extra", Offset: 74, Message: "v"},
		{Code: refusal.InvalidValue, Path: "/tool/arguments/x", Offset: -1, Message: "w"},
	}
	got, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"code":"unexpected_argument","stage":"schema","message":"m","violations":[{"code":"unexpected_argument","path":"/tool/arguments/extra","offset":74,"message":"v"},{"code":"invalid_value","path":"/tool/arguments/x","message":"w"}],"retryable":true}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestLoneViolation: what a model reads twice it pays for twice.
func TestLoneViolation(t *testing.T) {
	e := refusal.New(refusal.UnexpectedArgument, "m")
	e.Violations = []refusal.Violation{{Code: refusal.UnexpectedArgument, Path: "/tool/arguments/extra", Offset: 74, Message: "m"}}
	got, err := json.Marshal(e)
	const want = `{"code":"unexpected_argument","stage":"schema","message":"m","violations":[{"code":"unexpected_argument","path":"/tool/arguments/extra","offset":74}],"retryable":true}`
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	var read refusal.Error
	if err := json.Unmarshal(got, &read); err != nil || read.Violations[0].Message != "m" {
		t.Errorf("read as %+v, %v", read, err)
	}
}

func TestRetryable(t *testing.T) {
	limited := refusal.New(refusal.RateLimited, "m")
	if limited.Retryable() {
		t.Error("a limit without a time to wait is retryable")
	}
	limited.RetryAfterMS = 1
	for e, want := range map[*refusal.Error]bool{
		limited:                                               true,
		refusal.New(refusal.MixedOutput, "m"):                 true,
		refusal.New(refusal.UnknownTool, "m"):                 true,
		refusal.New(refusal.PermissionDenied, "m"):            false,
		refusal.At(refusal.Parse, refusal.Internal, "m"):      true,
		refusal.At(refusal.Execute, refusal.ToolTimeout, "m"): false,
	} {
		if e.Retryable() != want {
			t.Errorf("%s at %s: retryable %v, want %v", e.Code, e.Stage, e.Retryable(), want)
		}
	}
}

func TestFromHidesForeignErrors(t *testing.T) {
	if refusal.From(refusal.Schema, nil) != nil {
		t.Error("no error became a refusal")
	}
	own := refusal.New(refusal.TooDeep, "m")
	if refusal.From(refusal.Schema, fmt.Errorf("wrapped: %w", own)) != own {
		t.Error("a wrapped refusal was replaced")
	}
	e := refusal.From(refusal.Schema, errors.New("password hunter2"))
	body, _ := json.Marshal(e)
	if e.Code != refusal.Internal || e.Stage != refusal.Schema {
		t.Errorf("got %s at %s", e.Code, e.Stage)
	}
	if string(body) == "" || strings.Contains(string(body), "hunter2") {
		t.Errorf("the cause crossed to the caller: %s", body)
	}
}

func TestSort(t *testing.T) {
	vs := []refusal.Violation{
		{Code: refusal.InvalidValue, Path: "/a"}, {Code: refusal.UnexpectedArgument, Path: "/a"},
		{Code: refusal.MissingArgument, Path: "/a"}, {Code: refusal.WrongType, Path: "/a"},
		{Code: refusal.InvalidValue, Path: "/A"},
	}
	refusal.Sort(vs)
	var got string
	for _, v := range vs {
		got += v.Path + ":" + string(v.Code) + " "
	}
	const want = "/A:invalid_value /a:wrong_type /a:missing_argument /a:unexpected_argument /a:invalid_value "
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestEscapePointer(t *testing.T) {
	for in, want := range map[string]string{"a": "a", "a/b": "a~1b", "~": "~0", "~1/": "~01~1", "": ""} {
		if got := refusal.EscapePointer(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// Operators are told of every code what it means and what to do.
func TestEveryCodeHasAdvice(t *testing.T) {
	for _, code := range refusal.Codes() {
		means, next := code.Means(), code.Next()
		if means == "" || next == "" || strings.HasSuffix(means, ".") || strings.HasSuffix(next, ".") {
			t.Errorf("%s: %q, %q; expected two sentences without a full stop", code, means, next)
		}
		if e := refusal.New(code, ""); !slices.Contains(refusal.Stages(), e.Stage) {
			t.Errorf("%s: its stage %q is missing in Stages", code, e.Stage)
		}
	}
}
