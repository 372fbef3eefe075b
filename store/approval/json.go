package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// maxEncoded bounds the JSON of an approval or a grant, in bytes.
const maxEncoded = 1 << 20

// Encode returns the JSON that Decode reads. Arguments are in base64, so that their bytes
// stay as they are.
func Encode[T Approval | Grant](record T) ([]byte, error) {
	b, err := json.Marshal(record)
	if err == nil && len(b) > maxEncoded {
		err = errInvalid
	}
	return b, err
}

// Decode reads JSON that Encode has written. An unknown member is an error: this version
// does not know what it forbids.
func Decode[T Approval | Grant](b []byte) (record T, err error) {
	if len(b) > maxEncoded {
		return record, errInvalid
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&record); err != nil {
		return record, fmt.Errorf("approval: %w", err)
	}
	if d.More() {
		return record, errInvalid
	}
	if a, ok := any(&record).(*Approval); ok {
		return record, a.Validate()
	}
	return record, nil
}
