package sse

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAppendEvent(t *testing.T) {
	for want, got := range map[string][]byte{
		"data: {}\n\n":                            AppendEvent(nil, "", []byte("{}")),
		"event: state\ndata: {}\n\n":              AppendEvent(nil, "state", []byte("{}")),
		"data: \n\n":                              AppendEvent(nil, "", nil),
		"data: a\ndata: b\ndata: c\ndata: d\n\n":  AppendEvent(nil, "", []byte("a\nb\rc\r\nd")),
		"data: a\ndata: \ndata: \n\n":             AppendEvent(nil, "", []byte("a\n\n")),
		": waiting\n\n":                           AppendComment(nil, "waiting"),
		"data: a\n\n: x\n\nevent: n\ndata: b\n\n": AppendEvent(AppendComment(AppendEvent(nil, "", []byte("a")), "x"), "n", []byte("b")),
	} {
		if string(got) != want {
			t.Errorf("found %q, expected %q", got, want)
		}
	}
}

// FuzzRoundTrip holds that a reader finds the events which were written, and no other,
// whatever their data.
func FuzzRoundTrip(f *testing.F) {
	for _, data := range []string{"", "{}", "a\nb", "a\r\nb\r", "\n\n", "\ndata: x\n\nevent: y\n", ": c", "\ufeff", "\x00\xff"} {
		f.Add([]byte(data), "")
		f.Add([]byte(data), "state")
	}
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		if strings.ContainsAny(name, "\r\n") {
			return
		}
		stream := AppendEvent(AppendComment(AppendEvent(nil, name, data), "c"), "", []byte("end"))
		r := Reader{Source: bytes.NewReader(stream), MaxBytes: len(stream)}
		want := bytes.ReplaceAll(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n"))
		gotName, got, err := r.Next()
		if err != nil || string(gotName) != name || !bytes.Equal(got, want) {
			t.Fatalf("found %q=%q, %v; expected %q=%q", gotName, got, err, name, want)
		}
		if gotName, got, err = r.Next(); err != nil || len(gotName) != 0 || string(got) != "end" {
			t.Fatalf("then found %q=%q, %v", gotName, got, err)
		}
		if _, _, err = r.Next(); !errors.Is(err, ErrEnd) {
			t.Fatalf("then found %v", err)
		}
	})
}

// deadlines is a response that remembers its deadlines.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(until time.Time) error {
	d.set = append(d.set, until)
	return nil
}

func TestWriter(t *testing.T) {
	for step, want := range map[time.Duration]int{0: 2, time.Hour: 1} {
		d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		w := NewWriter(d, time.Minute, step)
		w.Begin("text/event-stream", "no-store")
		for i, send := range []func([]byte) error{w.Write, w.Send, w.SendWithin} {
			if err := send(AppendComment(nil, "x")); err != nil || d.Flushed == (i == 0) {
				t.Fatalf("piece %d: %v, flushed %t", i, err, d.Flushed)
			}
		}
		h := d.Header()
		if d.Code != 200 || h.Get("Content-Type") != "text/event-stream" || h.Get("Cache-Control") != "no-store" || h.Get("X-Accel-Buffering") != "no" {
			t.Errorf("head: %d %v", d.Code, h)
		}
		if d.Body.String() != strings.Repeat(": x\n\n", 3) || !d.Flushed {
			t.Errorf("body: %q", d.Body)
		}
		if len(d.set) != want {
			t.Errorf("step %v: %d deadlines, expected %d", step, len(d.set), want)
		}
	}
}
