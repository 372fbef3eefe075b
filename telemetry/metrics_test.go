package telemetry_test

import (
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/callgate/callgate/telemetry"
)

// The version is a series of its own, with the build in its labels.
func TestBuildInfo(t *testing.T) {
	m := telemetry.New()
	m.Built("v1.2.3", "abc")
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	want := `callgate_build_info{goversion="` + runtime.Version() + `",revision="abc",version="v1.2.3"} 1`
	if !strings.Contains(w.Body.String(), want) {
		t.Errorf("lacks %s", want)
	}
}
