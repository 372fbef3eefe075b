package redisconn

import "testing"

func TestSupportedVersion(t *testing.T) {
	for version, want := range map[string]bool{"6.0.0": true, "7.2.4": true, "10.0": true, "5.0.14": false, "": false, "x.1": false} {
		if got := supportedVersion(version); got != want {
			t.Errorf("%q: %v, expected %v", version, got, want)
		}
	}
}
