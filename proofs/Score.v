(* The sensitivity of the score: how many records a cell is expected to publish. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Incrowd Require Import Binomial.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Score.
Variables (R : realFieldType) (b : R).
Implicit Types (i k n : nat).

(* E[X; X >= k], X ~ Bin(n, b). *)
Definition survivors k n : R := mean b n (fun j => j%:R * (k <= j)%N%:R).

(* One record more, with k = i + 1. *)
Theorem score_step i n :
  survivors i.+1 n.+1 - survivors i.+1 n = b * (tail b i.+1 n + i.+1%:R * mass b i n).
Proof.
have -> : tail b i.+1 n + i.+1%:R * mass b i n
    = mean b n (fun j => (i.+1 <= j)%N%:R + i.+1%:R * (j == i)%:R) by rewrite meanD meanZ mean_point.
rewrite /survivors meanS.
rewrite [LHS](_ : _ = b * (mean b n (fun j => j.+1%:R * (i.+1 <= j.+1)%N%:R)
                           - mean b n (fun j => j%:R * (i.+1 <= j)%N%:R))); last by ring.
rewrite -meanB; congr (_ * _); apply: mean_ext => j; rewrite ltnS.
by case: (ltngtP i j) => [_ | _ | ->] /=; ring.
Qed.

(* So no cell's term ever falls. *)
Theorem score_never_falls k n : 0 < b -> b < 1 -> survivors k n <= survivors k n.+1.
Proof.
move=> b_gt0 b_lt1; case: k => [|i]; rewrite -subr_ge0; last first.
  rewrite score_step; apply: mulr_ge0; first exact: ltW.
  apply: addr_ge0; first exact: tail_ge0.
  by apply: mulr_ge0; [apply: ler0n | apply: mass_ge0].
rewrite /survivors meanS [leRHS](_ : _ = b * (mean b n (fun j => j.+1%:R * (0 <= j.+1)%N%:R)
                           - mean b n (fun j => j%:R * (0 <= j)%N%:R))); last by ring.
rewrite -meanB; apply: mulr_ge0; [exact: ltW | apply: mean_ge0 => // j].
by rewrite !mulr1 subr_ge0 ler_nat.
Qed.

End Score.
