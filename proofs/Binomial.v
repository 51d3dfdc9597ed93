(* The binomial law over a real field, and how it moves with its parameters.

   Nothing here is particular to incrowd: mass function, expectation, one more
   trial, thinning, and the two monotone likelihood ratios on which the exact
   delta of a sampled crowd rests. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Binomial.
Variable R : realFieldType.
Implicit Types (b E : R) (i j k n a : nat) (phi psi : nat -> R).

(* The probability of j successes in n trials with chance b each. *)
Definition mass b j n : R := b ^+ j * (1 - b) ^+ (n - j) * 'C(n, j)%:R.

(* The expectation of phi(X), X ~ Bin(n, b). *)
Definition mean b n phi : R := \sum_(j < n.+1) mass b j n * phi j.

(* P[X >= J]. *)
Definition tail b J n : R := mean b n (fun j => (J <= j)%N%:R).

Lemma mass_small b j n : (n < j)%N -> mass b j n = 0.
Proof. by move=> lt_nj; rewrite /mass bin_small // mulr0. Qed.

Lemma mass00 b : mass b 0 0 = 1.
Proof. by rewrite /mass !expr0 !mulr1. Qed.

Lemma mass0S b n : mass b 0 n.+1 = (1 - b) * mass b 0 n.
Proof. by rewrite /mass !bin0 !subn0 exprS; ring. Qed.

Lemma massSS b j n : mass b j.+1 n.+1 = b * mass b j n + (1 - b) * mass b j.+1 n.
Proof.
rewrite /mass binS subSS natrD.
case: (leqP j.+1 n) => [le_jn | lt_nj].
  have -> : (n - j = (n - j.+1).+1)%N by rewrite -subSn // subSS.
  by rewrite !exprS; ring.
by rewrite bin_small // !exprS; ring.
Qed.

Lemma mean_ext b n phi psi : (forall j, phi j = psi j) -> mean b n phi = mean b n psi.
Proof. by move=> eq_f; apply: eq_bigr => j _; rewrite eq_f. Qed.

Lemma mean0 b phi : mean b 0 phi = phi 0%N.
Proof. by rewrite /mean big_ord_recl big_ord0 mass00 mul1r addr0. Qed.

(* Conditioning on one trial. *)
Lemma meanS b n phi :
  mean b n.+1 phi = b * mean b n (fun j => phi j.+1) + (1 - b) * mean b n phi.
Proof.
have last : mean b n phi = \sum_(j < n.+2) mass b j n * phi j.
  by rewrite /mean [RHS]big_ord_recr /= (mass_small b (ltnSn n)) mul0r addr0.
have split_off : \sum_(j < n.+2) mass b j n * phi j
    = mass b 0 n * phi 0%N + \sum_(j < n.+1) mass b j.+1 n * phi j.+1.
  by rewrite big_ord_recl; congr (_ + _); apply: eq_bigr => j _; rewrite lift0.
rewrite last split_off /mean big_ord_recl mass0S.
rewrite (eq_bigr (fun j : 'I_n.+1 =>
    b * (mass b j n * phi j.+1) + (1 - b) * (mass b j.+1 n * phi j.+1))); last first.
  by move=> j _; rewrite lift0 massSS; ring.
by rewrite big_split -!mulr_sumr /=; ring.
Qed.

Lemma meanD b n phi psi : mean b n (fun j => phi j + psi j) = mean b n phi + mean b n psi.
Proof. by rewrite /mean -big_split; apply: eq_bigr => j _; rewrite mulrDr. Qed.

Lemma meanZ b n c phi : mean b n (fun j => c * phi j) = c * mean b n phi.
Proof. by rewrite /mean mulr_sumr; apply: eq_bigr => j _; rewrite mulrCA. Qed.

Lemma meanB b n phi psi : mean b n (fun j => phi j - psi j) = mean b n phi - mean b n psi.
Proof. by rewrite /mean -sumrB; apply: eq_bigr => j _; rewrite mulrBr. Qed.

Lemma mean_const b n c : mean b n (fun=> c) = c.
Proof. by elim: n => [|n IH]; rewrite ?mean0 // meanS IH; ring. Qed.

Lemma mean_point b n i : mean b n (fun j => (j == i)%:R) = mass b i n.
Proof.
rewrite /mean; case: (ltnP i n.+1) => [lt_in | lt_ni].
  rewrite (bigD1 (Ordinal lt_in)) //= eqxx mulr1 big1 ?addr0 // => j neq_ji.
  case: eqP => [eq_ji | _]; last by rewrite mulr0.
  by case/eqP: neq_ji; apply/val_inj.
rewrite mass_small // big1 // => j _.
by case: eqP (ltn_ord j) => [-> | _ _]; rewrite ?mulr0 // ltnNge lt_ni.
Qed.

(* Thinning twice is thinning once with the product of the rates. *)
Lemma mean_thin p b n phi : mean (p * b) n phi = mean p n (fun m => mean b m phi).
Proof.
elim: n phi => [|n IH] phi; first by rewrite !mean0.
rewrite !meanS !IH.
rewrite (mean_ext p n (fun m => meanS b m phi)) meanD !meanZ.
by ring.
Qed.

Lemma tail0 b n : tail b 0 n = 1.
Proof. by rewrite /tail mean_const. Qed.

Lemma tail_zero b J : tail b J.+1 0 = 0.
Proof. by rewrite /tail mean0. Qed.

Lemma tailSS b J n : tail b J.+1 n.+1 = b * tail b J n + (1 - b) * tail b J.+1 n.
Proof. exact: meanS. Qed.

Lemma tail_mass b J n : tail b J n = mass b J n + tail b J.+1 n.
Proof.
rewrite -mean_point /tail -meanD; apply: mean_ext => j.
by case: (ltngtP J j) => // _; rewrite ?add0r ?addr0.
Qed.

Lemma tail_step b J n : tail b J.+1 n.+1 = tail b J.+1 n + b * mass b J n.
Proof. by rewrite tailSS (tail_mass b J); ring. Qed.

Section Rate.
Variable b : R.
Hypotheses (b_gt0 : 0 < b) (b_lt1 : b < 1).
Let q_gt0 : 0 < 1 - b. Proof. by rewrite subr_gt0. Qed.

Lemma mass_ge0 j n : 0 <= mass b j n.
Proof. by rewrite !mulr_ge0 ?exprn_ge0 ?ler0n // ltW. Qed.

Lemma mass_gt0 j n : (j <= n)%N -> 0 < mass b j n.
Proof. by move=> le_jn; rewrite !mulr_gt0 ?exprn_gt0 ?ltr0n ?bin_gt0. Qed.

Lemma mean_le n phi psi : (forall j, phi j <= psi j) -> mean b n phi <= mean b n psi.
Proof. by move=> le_f; apply: ler_sum => j _; rewrite ler_wpmul2l ?mass_ge0. Qed.

Lemma mean_ge0 n phi : (forall j, 0 <= phi j) -> 0 <= mean b n phi.
Proof. by move=> f_ge0; apply: sumr_ge0 => j _; rewrite mulr_ge0 ?mass_ge0. Qed.

Lemma tail_ge0 J n : 0 <= tail b J n.
Proof. by apply: mean_ge0 => j; rewrite ler0n. Qed.

Lemma tail_anti J n : tail b J.+1 n <= tail b J n.
Proof. by rewrite [leRHS]tail_mass ler_addr mass_ge0. Qed.

(* Neighbouring masses: the next number of successes, and one more trial. *)
Lemma mass_next j n : mass b j.+1 n * (j.+1%:R * (1 - b)) = mass b j n * ((n - j)%N%:R * b).
Proof.
case: (ltnP j n) => [lt_jn | le_nj]; last first.
  move: (le_nj); rewrite -subn_eq0 => /eqP ->.
  by rewrite mass_small ?ltnS // !mul0r mulr0.
have binE : 'C(n, j.+1)%:R * j.+1%:R = 'C(n, j)%:R * (n - j)%N%:R :> R.
  by rewrite -!natrM mulnC mul_bin_left mulnC.
have -> : (n - j = (n - j.+1).+1)%N by rewrite -subSn // subSS.
rewrite -[(n - j)%N]prednK ?subn_gt0 // in binE.
transitivity (b ^+ j.+1 * (1 - b) ^+ (n - j.+1).+1 * ('C(n, j.+1)%:R * j.+1%:R)).
  by rewrite /mass !exprS; ring.
have -> : (n - j.+1 = (n - j).-1)%N by rewrite subnS.
rewrite binE /mass.
have -> : (n - j = (n - j).-1.+1)%N by rewrite prednK ?subn_gt0.
by rewrite !exprS /=; ring.
Qed.

Lemma mass_trial j n : mass b j n.+1 * (n.+1 - j)%N%:R = mass b j n * (n.+1%:R * (1 - b)).
Proof.
case: (leqP j n) => [le_jn | lt_nj]; last first.
  rewrite (mass_small b lt_nj) mul0r; case: (leqP j n.+1) => [le_jn | lt_nj'].
    by have -> : j = n.+1 by [apply/eqP; rewrite eqn_leq le_jn lt_nj]; rewrite subnn mulr0.
  by rewrite mass_small // mul0r.
have binE : 'C(n.+1, j)%:R * (n.+1 - j)%N%:R = 'C(n, j)%:R * n.+1%:R :> R.
  by rewrite -!natrM mulnC -mul_bin_down mulnC.
transitivity (b ^+ j * (1 - b) ^+ (n.+1 - j) * ('C(n.+1, j)%:R * (n.+1 - j)%N%:R)).
  by rewrite /mass; ring.
by rewrite binE /mass subSn // exprS; ring.
Qed.

(* The likelihood ratio of n + a trials against n rises with the count ... *)
Lemma mass_ratio_rises a i j n : (i <= j)%N ->
  mass b i (n + a) * mass b j n <= mass b j (n + a) * mass b i n.
Proof.
elim: j => [|j IH]; first by rewrite leqn0 => /eqP ->.
rewrite leq_eqVlt => /predU1P [-> // | lt_ij].
case: (ltnP j n) => [lt_jn | le_nj]; last first.
  by rewrite (@mass_small b j.+1 n) // mulr0 mulr_ge0 ?mass_ge0.
have fj_gt0 : 0 < mass b j n by rewrite mass_gt0 // ltnW.
have c_gt0 : 0 < j.+1%:R * (1 - b) by rewrite mulr_gt0 ?ltr0n.
rewrite -(ler_pmul2r fj_gt0) -(ler_pmul2r c_gt0).
have -> : mass b i (n + a) * mass b j.+1 n * mass b j n * (j.+1%:R * (1 - b))
  = mass b i (n + a) * mass b j n * (mass b j n * ((n - j)%N%:R * b)).
  by rewrite -mass_next; ring.
have -> : mass b j.+1 (n + a) * mass b i n * mass b j n * (j.+1%:R * (1 - b))
  = mass b j (n + a) * mass b i n * (mass b j n * ((n + a - j)%N%:R * b)).
  transitivity (mass b j.+1 (n + a) * (j.+1%:R * (1 - b)) * mass b i n * mass b j n); first by ring.
  by rewrite mass_next; ring.
have pos_ge0 m : 0 <= m%:R * b by rewrite mulr_ge0 ?ler0n ?ltW.
apply: ler_pmul; first exact: (mulr_ge0 (mass_ge0 _ _) (mass_ge0 _ _)).
- exact: (mulr_ge0 (mass_ge0 _ _) (pos_ge0 _)).
- exact: IH.
by rewrite ler_wpmul2l ?mass_ge0 // ler_wpmul2r ?(ltW b_gt0) // ler_nat leq_sub2r // leq_addr.
Qed.

(* ... and falls with the number of trials. *)
Lemma mass_ratio_falls a i n : (i <= n)%N ->
  mass b i (n.+1 + a) * mass b i n <= mass b i (n + a) * mass b i n.+1.
Proof.
move=> le_in.
have pos m : (i <= m)%N -> 0 < (m.+1 - i)%N%:R :> R by rewrite ltr0n subn_gt0 ltnS.
have le_ia : (i <= n + a)%N by rewrite (leq_trans le_in) ?leq_addr.
rewrite -(ler_pmul2r (pos _ le_in)) -(ler_pmul2r (pos _ le_ia)) addSn.
have -> : mass b i (n + a).+1 * mass b i n * (n.+1 - i)%N%:R * ((n + a).+1 - i)%N%:R
  = mass b i (n + a) * mass b i n * (1 - b) * ((n + a).+1%:R * (n.+1 - i)%N%:R).
  transitivity (mass b i (n + a).+1 * ((n + a).+1 - i)%N%:R * mass b i n * (n.+1 - i)%N%:R); first by ring.
  by rewrite mass_trial; ring.
have -> : mass b i (n + a) * mass b i n.+1 * (n.+1 - i)%N%:R * ((n + a).+1 - i)%N%:R
  = mass b i (n + a) * mass b i n * (1 - b) * (n.+1%:R * ((n + a).+1 - i)%N%:R).
  transitivity (mass b i n.+1 * (n.+1 - i)%N%:R * mass b i (n + a) * ((n + a).+1 - i)%N%:R); first by ring.
  by rewrite mass_trial; ring.
apply: ler_wpmul2l; first exact: (mulr_ge0 (mulr_ge0 (mass_ge0 _ _) (mass_ge0 _ _)) (ltW q_gt0)).
rewrite -!natrM ler_nat !mulnBr [X in (X - _ <= _)%N]mulnC leq_sub2l //.
by rewrite leq_mul2r ltnS leq_addr orbT.
Qed.

End Rate.
End Binomial.
