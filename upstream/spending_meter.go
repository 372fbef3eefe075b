package upstream

import (
	"context"
	"net/http"
)

// Meter bounds what requests to a provider may take. It is told of each attempt at one of the
// endpoints that answer with a model's output, those of counts and lists are not metered.
type Meter interface {
	// Prepare returns the body that is sent in the place of another one, in each attempt. Its
	// error ends the request.
	Prepare(endpoint Endpoint, body []byte) ([]byte, error)
	// Reserve is called before each attempt. Its error ends the request: nothing is sent.
	Reserve(ctx context.Context) error
	// Unbilled is called after an attempt that has certainly taken nothing: it has not reached
	// the provider, or the provider has refused it.
	Unbilled()
}

// refusedByProvider reports whether a status says that the provider has not taken a request up. Of
// a timeout (408), a conflict (409) and the like that is not certain.
func refusedByProvider(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusForbidden, http.StatusNotFound,
		http.StatusMethodNotAllowed, http.StatusProxyAuthRequired, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity, http.StatusTooManyRequests:
		return true
	}
	return false
}
