package model

import (
	"fmt"
	"strings"
)

// Precision is a number format of weights, activations or the KV cache.
type Precision uint8

// The formats. Auto means the published format (weights) or 16 bits (KV cache). The sizes of the four-bit formats
// include their block scales.
const (
	Auto  Precision = iota
	BF16            // bfloat16
	FP16            // IEEE half precision; as fast as BF16
	FP8             // 8-bit floating point, weights and activations
	INT4            // 4-bit integer weights with group scales, 16-bit activations
	NVFP4           // 4-bit floating point in groups of 16 with an 8-bit scale, weights and activations
	MXFP4           // 4-bit floating point weights in groups of 32 with an 8-bit scale, 16-bit activations
	precisions
)

var precisionNames = [precisions]string{"auto", "bf16", "fp16", "fp8", "int4", "nvfp4", "mxfp4"}

// ParsePrecision returns the format with the given name, in any case.
func ParsePrecision(s string) (Precision, error) {
	for p, name := range precisionNames {
		if strings.EqualFold(s, name) {
			return Precision(p), nil
		}
	}
	return Auto, fmt.Errorf("unknown precision %q (want %s)", s, strings.Join(precisionNames[:], ", "))
}

// String returns the name of the format, such as "fp8".
func (p Precision) String() string {
	if p < precisions {
		return precisionNames[p]
	}
	return fmt.Sprintf("precision(%d)", uint8(p))
}

// WeightBytes returns the bytes of a stored weight, including its share of the block scales.
func (p Precision) WeightBytes() float64 {
	switch p {
	case FP8:
		return 1
	case NVFP4:
		return 0.5 + 1.0/16
	case INT4, MXFP4:
		return 0.5 + 1.0/32
	}
	return 2
}

// activationBytes returns the bytes of an input of a matrix product that computes in p.
func (p Precision) activationBytes() float64 {
	switch p {
	case FP8:
		return 1
	case NVFP4:
		return 0.5 + 1.0/16
	}
	return 2
}

// kvBytes returns the bytes of a number in a KV cache of format p.
func (p Precision) kvBytes() int64 {
	if p == FP8 {
		return 1
	}
	return 2
}
