package redisstore

import "testing"

func TestParseCallWithoutAStep(t *testing.T) {
	if c, err := parseCall([]string{"id", "1"}); err == nil {
		t.Errorf("accepted: %+v", c)
	}
}
