package main

import (
	"context"
	"net/http"
)

// fail is the tool /fail: it does nothing, and fails as it was asked to.
func fail(_ context.Context, body []byte) (any, error) {
	status := whole(http.StatusInternalServerError)
	const expected = "an HTTP status from 400 to 599"
	if err := decode(body, argument{name: "status", into: &status, expected: expected}); err != nil {
		return nil, err
	}
	if status < 400 || status > 599 {
		return nil, failed(http.StatusBadRequest, "found another number; expected %s", expected)
	}
	return nil, failed(int(status), "failed, as asked")
}
