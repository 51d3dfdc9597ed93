(* Plain samples (Chaudhuri and Mishra), one row replaced; Corners.v has c rows.

   Each row is kept with probability p. A table has n v rows of value v, the sample
   s v of them. The sample is private at epsilon if no two ways of overwriting one
   row of the table change its probability by more than the factor 1 + epsilon. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Incrowd Require Import Binomial Tables.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.Theory.
Local Open Scope ring_scope.

Section Samples.
Variables (R : realFieldType) (V : finType) (p eps : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1) (eps_ge0 : 0 <= eps).
Implicit Types (n s x : V -> nat) (u v w : V).

(* The probability of the sample s (Tables.sampling_commutes_with_recoding). *)
Definition chance s x : R := \prod_v mass p (s v) (x v).

(* The table x and one row of value v. *)
Definition with_row x v : V -> nat := fun w => (x w + (w == v))%N.

Definition private_sample s n : Prop := forall x u, (forall w, n w = with_row x u w) ->
  forall v v', chance s (with_row x v) <= (1 + eps) * chance s (with_row x v').

Let q_gt0 : 0 < 1 - p. Proof. by rewrite subr_gt0. Qed.

Lemma chance_ge0 s x : 0 <= chance s x.
Proof. by apply: prodr_ge0 => v _; apply: mass_ge0. Qed.

Lemma chance_split s x v : chance s x = mass p (s v) (x v) * \prod_(w | w != v) mass p (s w) (x w).
Proof. by rewrite /chance (bigD1 v). Qed.

Lemma chance_others s x v :
  \prod_(w | w != v) mass p (s w) (with_row x v w) = \prod_(w | w != v) mass p (s w) (x w).
Proof. by apply: eq_bigr => w /negbTE neq; rewrite /with_row neq addn0. Qed.

(* One row more. *)
Lemma chance_row s x v : chance s (with_row x v) * ((x v).+1 - s v)%N%:R
  = chance s x * ((x v).+1%:R * (1 - p)).
Proof.
rewrite !(chance_split _ _ v) chance_others /with_row eqxx addn1.
set P := \prod_(w | _) _; transitivity (mass p (s v) (x v).+1 * ((x v).+1 - s v)%N%:R * P); first by ring.
by rewrite mass_trial; ring.
Qed.

Lemma chance_row_ge s x v : (1 - p) * chance s x <= chance s (with_row x v).
Proof.
rewrite !(chance_split _ _ v) chance_others /with_row eqxx addn1 mulrA ler_wpmul2r //.
  by apply: prodr_ge0 => w _; apply: mass_ge0.
case: (s v) => [|j]; first by rewrite mass0S.
by rewrite massSS ler_addr mulr_ge0 ?mass_ge0 // ltW.
Qed.

Lemma chance_row_absent s x v : s v = 0%N -> chance s (with_row x v) = (1 - p) * chance s x.
Proof.
by move=> s_v; rewrite !(chance_split _ _ v) chance_others /with_row eqxx addn1 s_v mass0S mulrA.
Qed.

(* One row more, if few enough of its value are in the sample. *)
Lemma chance_row_le s x v : (1 + eps) * (s v)%:R <= eps * (x v).+1%:R ->
  chance s (with_row x v) <= (1 + eps) * ((1 - p) * chance s x).
Proof.
set N := (x v).+1 => small.
have e_gt0 : 0 < 1 + eps by rewrite ltr_paddr ?ltr01.
have lt_sN : (s v < N)%N.
  rewrite -(ltr_nat R) -(ltr_pmul2l e_gt0); apply: le_lt_trans small _.
  by rewrite ltr_pmul2r ?ltr0n // ltr_addr ltr01.
have gap_gt0 : 0 < (N - s v)%N%:R :> R by rewrite ltr0n subn_gt0.
rewrite -(ler_pmul2r gap_gt0) chance_row -/N.
have -> : (1 + eps) * ((1 - p) * chance s x) * (N - s v)%N%:R
  = chance s x * (1 - p) * ((1 + eps) * (N - s v)%N%:R) by ring.
rewrite [leLHS](_ : _ = chance s x * (1 - p) * N%:R); last by rewrite mulrA mulrAC.
apply: ler_wpmul2l; first exact: (mulr_ge0 (chance_ge0 _ _) (ltW q_gt0)).
rewrite natrB 1?ltnW // mulrBr ler_subr_addr -ler_subr_addl.
by rewrite [leRHS](_ : _ = eps * N%:R) //; ring.
Qed.

(* The worst ratio is n v / (n v - s v): the sample is private if every value
   has s v <= n v eps / (1 + eps) ... *)
Theorem sample_is_private s n : (forall v, (1 + eps) * (s v)%:R <= eps * (n v)%:R) ->
  private_sample s n.
Proof.
move=> small x u n_x v v'.
apply: le_trans (ler_wpmul2l _ (chance_row_ge s x v')); last by rewrite addr_ge0 ?ler01.
apply: chance_row_le; apply: le_trans (small v) _; rewrite ler_wpmul2l // ler_nat n_x /with_row.
by rewrite -[(x v).+1]addn1 leq_add2l leq_b1.
Qed.

(* ... and only then, as soon as some value is not in the sample. *)
Theorem sample_is_private_only_if s n w : (forall v, (s v <= n v)%N) -> s w = 0%N ->
  private_sample s n -> forall v, (1 + eps) * (s v)%:R <= eps * (n v)%:R.
Proof.
move=> le_sn s_w private v; case s_v : (s v) => [|j]; first by rewrite mulr0 mulr_ge0 ?ler0n.
have n_gt0 : (0 < n v)%N by apply: leq_trans (le_sn v); rewrite s_v.
pose x w' := (n w' - (w' == v))%N.
have n_x w' : n w' = with_row x v w'.
  by rewrite /with_row /x subnK //; case: eqP => // ->.
have x_v : (x v).+1 = n v by rewrite /x eqxx subn1 prednK.
have chance_n : chance s (with_row x v) = chance s n by apply: eq_bigr => w' _; rewrite -n_x.
have := private x v n_x v w; rewrite (chance_row_absent _ s_w) chance_n => ratio.
have pos : 0 < chance s n by apply: prodr_gt0 => w' _; apply: mass_gt0.
have pos_x : 0 < chance s x.
  rewrite lt_neqAle chance_ge0 andbT eq_sym; apply: contraTneq ratio => ->.
  by rewrite !mulr0 -ltNge.
have row := chance_row s x v; rewrite chance_n x_v natrB // in row.
have gap_ge0 : 0 <= (n v)%:R - (s v)%:R :> R by rewrite subr_ge0 ler_nat.
have := ler_wpmul2r gap_ge0 ratio; rewrite row -s_v.
have -> : (1 + eps) * ((1 - p) * chance s x) * ((n v)%:R - (s v)%:R)
  = chance s x * (((1 + eps) * ((n v)%:R - (s v)%:R)) * (1 - p)) by ring.
rewrite ler_pmul2l // ler_pmul2r // mulrBr ler_subr_addr -ler_subr_addl.
by rewrite [leRHS](_ : _ = eps * (n v)%:R) //; ring.
Qed.

(* The probability of a private sample is a product of binomial sums. *)
Definition safe (n j : nat) : bool := (1 + eps) * j%:R <= eps * n%:R.

Theorem chance_of_a_private_sample (I : finType) (record : I -> V) (T : {set I}) :
  expect p T (fun A => [forall v, safe #|part record T v| #|part record A v|]%:R)
  = \prod_v mean p #|part record T v| (fun j => (safe #|part record T v| j)%:R).
Proof. by rewrite -expect_cells; apply: expect_ext => A _; rewrite all_cells. Qed.

End Samples.
