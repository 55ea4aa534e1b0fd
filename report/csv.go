package report

import (
	"io"
	"strconv"
)

// SeriesColumns is the header of timeseries.csv, with the keys of [SeriesPoint].
const SeriesColumns = "start_s,end_s,arrivals,completions,input_tokens,output_tokens,iterations,preemptions," +
	"busy_fraction,kv_usage_mean,in_system_mean,running_mean,decoding_mean,queue_depth_mean,ttft_mean_ms,in_window"

// LifeColumns are further ones where replicas come and go.
const LifeColumns = ",replicas_ready,replicas_paid,held_mean"

// WriteSeries writes timeseries.csv.
func WriteSeries(w io.Writer, points []SeriesPoint) error {
	b := []byte(SeriesColumns)
	if len(points) > 0 && points[0].ReplicasPaid != nil {
		b = append(b, LifeColumns...)
	}
	b = append(b, '\n')
	for i := range points {
		b = points[i].append(b)
	}
	_, err := w.Write(b)
	return err
}

// WriteReplicaSeries writes replicas.csv: the rows of timeseries.csv of each replica, with its number before them.
func WriteReplicaSeries(w io.Writer, all [][]SeriesPoint) error {
	b := append([]byte("replica,"+SeriesColumns), '\n')
	for replica, points := range all {
		for i := range points {
			b = strconv.AppendInt(b, int64(replica), 10)
			b = points[i].append(append(b, ','))
		}
	}
	_, err := w.Write(b)
	return err
}

func (p *SeriesPoint) append(b []byte) []byte {
	b = appendFloat(b, &p.StartS)
	b = appendFloat(append(b, ','), &p.EndS)
	for _, n := range [...]int64{p.Arrivals, p.Completions, p.InputTokens, p.OutputTokens, p.Iterations,
		p.Preemptions} {
		b = strconv.AppendInt(append(b, ','), n, 10)
	}
	for _, v := range [...]*float64{
		&p.BusyFraction, p.KVUsageMean, &p.InSystemMean, &p.RunningMean, &p.DecodingMean, &p.QueueMean, p.TTFTMeanMs,
	} {
		b = appendFloat(append(b, ','), v)
	}
	b = strconv.AppendBool(append(b, ','), p.InWindow)
	if p.ReplicasPaid != nil {
		for _, v := range [...]*float64{p.ReplicasReady, p.ReplicasPaid, p.HeldMean} {
			b = appendFloat(append(b, ','), v)
		}
	}
	return append(b, '\n')
}

// appendFloat appends v to nine significant digits, and nothing for nil.
func appendFloat(b []byte, v *float64) []byte {
	if v == nil {
		return b
	}
	return strconv.AppendFloat(b, *v, 'g', 9, 64)
}
